"""Our paths and request bodies beside OpenAI's own document; the test hook compares the answers."""

from tests.api.examples import METHOD, job_body
from tests.api.running import Api
from tests.contract.hook import own_document
from tests.contract.reference import reference


def test_every_path_of_openais_is_served(api: Api) -> None:
    own = own_document(api.app)
    missing = [
        f"{method.upper()} {path}"
        for path, methods in reference().content["paths"].items()
        for method in methods
        if own.operation(method, f"/v1{path}") is None
    ]
    assert not missing


def test_our_example_body_is_one_that_openai_takes() -> None:
    document = reference()
    for name, value in (
        ("CreateFineTuningJobRequest", job_body("file-1")),
        ("FineTuneMethod", METHOD),
    ):
        if name in document.schemas:
            assert not document.problems(f"/components/schemas/{name}", value)
