"""The API of `tests/api`, and the document that it generates."""

import pytest

from tests.api.conftest import (  # noqa: F401
    api,
    client,
    client_for,
    http,
    model_server,
    new_key,
    pytest_runtest_call,
    sessions,
    settings,
    store,
)
from tests.api.running import Api
from tests.contract.documents import Document
from tests.contract.hook import own_document


@pytest.fixture
def document(api: Api) -> Document:  # noqa: F811
    """Our own OpenAPI document."""
    return own_document(api.app)
