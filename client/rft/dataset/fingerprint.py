"""What a row says, as one number, to find rows that say the same."""

from typing import Any


def fingerprint(row: dict[str, Any]) -> int | None:
    """A 64-bit number that is the same for the same conversation, None when there is none.

    The conversation is the messages, or the input's messages and both outputs of a preference;
    null fields, the order of fields and how characters are escaped make no difference. The number
    holds within this process only.
    """
    messages = row.get("messages")
    if type(messages) is list:
        return hash(_talk(messages))
    given = row.get("input")
    if type(given) is not dict or type(given.get("messages")) is not list:
        return None
    outputs = (row.get("preferred_output"), row.get("non_preferred_output"))
    return hash((_talk(given["messages"]), *map(_frozen, outputs)))


def _talk(messages: list[Any]) -> tuple[Any, ...]:
    """What is said; for plain messages alone, the same as the `talk` of `plain.plain`."""
    said: list[Any] = []
    for message in messages:
        if type(message) is not dict:
            said.append((_frozen(message),))
            continue
        role, content = message.get("role"), message.get("content")
        plain = type(role) is str and type(content) is str
        others = () if plain and len(message) == 2 else _others(message)
        if plain and not others:
            said += role, content
        else:
            said.append((_frozen(role), _frozen(content), frozenset(others)))
    return tuple(said)


def _others(message: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        (key, value if type(value) is str else _frozen(value))
        for key, value in message.items()
        if value is not None and key != "role" and key != "content"
    ]


def _frozen(value: Any) -> Any:
    if type(value) is dict:
        members = [
            (key, member if type(member) is str else _frozen(member))
            for key, member in value.items()
            if member is not None
        ]
        return frozenset(members)
    if type(value) is list:
        return tuple([_frozen(member) for member in value])
    return value
