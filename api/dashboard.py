"""The web pages at `/` and `/docs`: as they were built, or one sentence where they were not."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import StaticFiles

_WAY_OUT = (
    "was not built, or does not lie where RFT_DASHBOARD_DIR says: dashboard/dist of the folder in"
    " which the service was started, unless set.</p>"
)
_NOT_BUILT = (
    "<!doctype html><title>rft</title><p>The API of rft-service is running under /v1;"
    f" its dashboard {_WAY_OUT}"
)
_NO_DOCS = (
    "<!doctype html><title>rft API</title><p>The API is described in"
    f" <a href='/openapi.json'>openapi.json</a>; the page that shows it {_WAY_OUT}"
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
