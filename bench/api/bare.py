"""The floor of every read: a FastAPI route that returns ready bytes, and nothing else.

Start it with `uvicorn --factory bench.api.bare:create_app`; BENCH_BYTES names a JSON file that maps
each path (query included) to the text of its answer.
"""

import json
import os
from pathlib import Path

from fastapi import FastAPI, Request, Response


def create_app() -> FastAPI:
    """Build the application."""
    answers = json.loads(Path(os.environ["BENCH_BYTES"]).read_text())
    ready = {path: text.encode() for path, text in answers.items()}
    app = FastAPI()

    @app.get("/{path:path}")
    async def answer(request: Request) -> Response:
        query = request.url.query
        path = f"{request.url.path}?{query}" if query else request.url.path
        return Response(ready[path], media_type="application/json")

    return app
