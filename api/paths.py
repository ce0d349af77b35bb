"""The path of a request as the API's routes name it."""

from starlette.types import Scope


def path_of(scope: Scope) -> str:
    """Return the path without the prefix under which a proxy shows the API (`--root-path`)."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))
