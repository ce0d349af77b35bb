"""The web pages at `/` and `/docs`: as they were built, or one sentence where they were not."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import StaticFiles

_NOT_BUILT = (
    "<!doctype html><title>rft</title><p>The API of rft-service is running under /v1;"
    " its dashboard was not built, so there is nothing to see here.</p>"
)
_NO_DOCS = (
    "<!doctype html><title>rft API</title><p>The API is described in"
    " <a href='/openapi.json'>openapi.json</a>; the page that shows it was not built.</p>"
)


def install(app: FastAPI, folder: Path) -> None:
    """Serve the files of `folder` beside the API; a path that is no file stays a JSON 404."""
    if not (folder / "index.html").is_file():
        _serve(app, "/", HTMLResponse(_NOT_BUILT))
        _serve(app, "/docs", HTMLResponse(_NO_DOCS))
        return
    for file in folder.iterdir():
        if file.is_file():
            _serve(app, _path(file), FileResponse(file))
    if (folder / "assets").is_dir():
        app.mount("/assets", StaticFiles(directory=folder / "assets"))


def _path(file: Path) -> str:
    """Return where a file is served: a page without its ending, and `index.html` at `/`."""
    if file.suffix != ".html":
        return f"/{file.name}"
    return "/" if file.stem == "index" else f"/{file.stem}"


def _serve(app: FastAPI, path: str, response: Response) -> None:
    app.add_route(path, lambda _: response, methods=["GET"])
