"""Lines of a server-sent event stream, cut at line feeds only.

The text inside of an event may hold other characters that Python takes for line ends.
"""

from collections.abc import AsyncIterable, AsyncIterator


async def event_lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[str]:
    """Yield the lines of a stream of bytes as soon as they are whole, without their ends."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode()
    if rest:
        yield rest.decode()
