"""The web page at `/`: the built dashboard, or one sentence where it was not built."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import StaticFiles

_NOT_BUILT = (
    "<!doctype html><title>rft</title><p>The API of rft-service is running under /v1;"
    " its dashboard was not built, so there is nothing to see here.</p>"
)


def install(app: FastAPI, folder: Path) -> None:
    """Serve the files of `folder` beside the API; a path that is no file stays a JSON 404."""
    if not (folder / "index.html").is_file():
        _serve(app, "/", HTMLResponse(_NOT_BUILT))
        return
    for file in folder.iterdir():
        if file.is_file():
            path = "/" if file.name == "index.html" else f"/{file.name}"
            _serve(app, path, FileResponse(file))
    if (folder / "assets").is_dir():
        app.mount("/assets", StaticFiles(directory=folder / "assets"))


def _serve(app: FastAPI, path: str, response: Response) -> None:
    app.add_route(path, lambda _: response, methods=["GET"])
