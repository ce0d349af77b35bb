"""`/openapi.json`, the document for programs, which needs no key."""

import json
from functools import cache
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from api.openapi.document import build


def install(app: FastAPI) -> None:
    """Serve the document, which is made at the first request for it."""

    @cache
    def document() -> dict[str, Any]:
        return build(app)

    @cache
    def content() -> bytes:
        return json.dumps(document(), separators=(",", ":")).encode()

    def openapi_json(_: Request) -> Response:
        return Response(content(), media_type="application/json")

    app.openapi = document  # type: ignore[method-assign]
    app.add_route("/openapi.json", openapi_json, methods=["GET"])
