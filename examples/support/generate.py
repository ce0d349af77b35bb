"""Make the support-ticket data: seeded, made of parts, no real person in it.

    python examples/support/generate.py --out examples/support/data

A shop for household electronics wants each message to its support mailbox turned into a ticket:
``{"product", "issue", "priority", "order"}``. Products and problems are named the way customers
name them, not the way the schema does; the urgency is in the tone; the order number is somewhere in
the text, or missing.
"""

import argparse
import json
import random
from pathlib import Path
from typing import Any

PRODUCTS = {
    "kettle": [
        "the kettle",
        "my new kettle",
        "the water boiler",
        "the glass kettle",
        "the thing I boil water in",
    ],
    "headphones": [
        "the headphones",
        "the noise-cancelling set",
        "the earphones",
        "my headset",
        "the over-ear pair",
    ],
    "router": [
        "the router",
        "the wifi box",
        "the internet box",
        "the mesh unit",
        "the access point",
    ],
    "vacuum": [
        "the vacuum cleaner",
        "the robot cleaner",
        "the hoover",
        "the little floor robot",
        "the cordless vac",
    ],
    "lamp": [
        "the desk lamp",
        "the reading light",
        "the bedside lamp",
        "the floor lamp",
        "the LED light",
    ],
    "camera": [
        "the doorbell camera",
        "the webcam",
        "the security cam",
        "the outdoor camera",
        "the baby monitor",
    ],
}

ISSUES = {
    "defective": [
        "{p} stopped working after a week",
        "{p} does not switch on any more",
        "there is a crack in {p} and it smells burnt",
        "{p} makes a grinding noise and then shuts down",
        "I pressed the button on {p} and nothing happens",
        "{p} gets very hot and then dies",
    ],
    "delivery": [
        "{p} has still not arrived",
        "the tracking of {p} has not moved for days",
        "the parcel with {p} was left at the wrong house",
        "you sent the box but {p} was not in it",
        "{p} should have been here last Friday",
        "the courier says {p} went back to you",
    ],
    "refund": [
        "I sent {p} back and want my money",
        "I would like to return {p} for a full refund",
        "{p} is not what I expected, please take it back and pay me out",
        "I changed my mind about {p}, how do I get reimbursed",
        "the return of {p} was confirmed but nothing was paid back",
        "please cancel {p} and give me my money back",
    ],
    "billing": [
        "I was charged twice for {p}",
        "the invoice for {p} shows the wrong company name",
        "my discount code was not applied to {p}",
        "the amount on my card for {p} is higher than on your page",
        "I need a corrected receipt for {p}",
        "you took the payment for {p} although I had cancelled the instalments",
    ],
    "question": [
        "does {p} work with 110 volts",
        "which spare filter or part fits {p}",
        "can I connect {p} to the app of another brand",
        "how long is the warranty on {p}",
        "is there a manual for {p} in Spanish",
        "how do I reset {p} to the factory settings",
    ],
}

URGENCY = {
    "high": [
        "This is urgent, I need an answer today.",
        "If nothing happens by tomorrow I will call my lawyer.",
        "Please react at once, my daughter depends on it.",
        "I have written three times now and I am furious.",
        "We cannot open the shop without it.",
    ],
    "normal": [
        "Please get back to me this week.",
        "I would be glad about an answer in the next days.",
        "Let me know how we go on from here.",
        "Could somebody look into it?",
        "I am waiting for your reply.",
    ],
    "low": [
        "There is no hurry.",
        "Whenever you find the time.",
        "It is not pressing, I am just curious.",
        "Take your time with it.",
        "No need to answer before next month.",
    ],
}

OPENINGS = [
    "Hello,",
    "Hi there,",
    "Good morning,",
    "Dear team,",
    "To whom it may concern,",
    "hey",
    "",
]
CONTEXT = [
    "I have been a customer for years.",
    "A colleague told me about your shop.",
    "This is my second message.",
    "I bought it as a present.",
    "I ordered it from my phone.",
    "The last order went well, by the way.",
    "I am writing from my work address.",
    "",
    "",
]
ORDER = [
    "Order {n}.",
    "My order number is {n}.",
    "(order {n})",
    "It is about {n}.",
    "Reference: {n}",
]
CLOSINGS = [
    "Thanks",
    "Kind regards",
    "Best",
    "Regards",
    "Thank you in advance",
    "",
    "Sent from my phone",
]

INSTRUCTION = (
    "Turn the customer's message into a ticket. Reply with JSON only, with the keys product, "
    "issue, priority and order (the order number, or null)."
)


def ticket(rng: random.Random) -> dict[str, Any]:
    """One message and the ticket that a clerk would make of it."""
    product, issue = rng.choice(list(PRODUCTS)), rng.choice(list(ISSUES))
    priority = rng.choice(list(URGENCY))
    number = f"{rng.choice('ABKRT')}-{rng.randint(10000, 99999)}" if rng.random() < 0.8 else None
    complaint = rng.choice(ISSUES[issue]).format(p=rng.choice(PRODUCTS[product]))
    complaint = complaint[0].upper() + complaint[1:] + ("?" if issue == "question" else ".")
    middle = [rng.choice(CONTEXT), complaint, rng.choice(URGENCY[priority])]
    if number is not None:
        middle.append(rng.choice(ORDER).format(n=number))
    # The complaint is not always first, and the tone may come before it.
    rng.shuffle(middle)
    text = " ".join(part for part in [rng.choice(OPENINGS), *middle, rng.choice(CLOSINGS)] if part)
    return {
        "text": _as_typed(text, rng),
        "ticket": {"product": product, "issue": issue, "priority": priority, "order": number},
    }


def _as_typed(text: str, rng: random.Random) -> str:
    """Some people type in lower case, and some fingers slip; order numbers stay as they are."""
    words = text.split(" ")
    lower = rng.random() < 0.25
    for i, word in enumerate(words):
        if any(c.isdigit() for c in word):
            continue
        if lower:
            word = word.lower()
        if len(word) > 4 and rng.random() < 0.03:
            at = rng.randrange(1, len(word) - 2)
            word = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        words[i] = word
    return " ".join(words)


def messages(text: str) -> list[dict[str, str]]:
    """The conversation that asks for a ticket."""
    return [{"role": "developer", "content": INSTRUCTION}, {"role": "user", "content": text}]


def reinforcement_row(made: dict[str, Any]) -> dict[str, Any]:
    """A row whose answer only the grader sees."""
    return {"messages": messages(made["text"]), "ticket": made["ticket"]}


def demonstration(made: dict[str, Any]) -> dict[str, Any]:
    """A row that shows the answer."""
    answer = {"role": "assistant", "content": json.dumps(made["ticket"])}
    return {"messages": [*messages(made["text"]), answer]}


def make(seed: int) -> dict[str, list[dict[str, Any]]]:
    """The three files' rows: 64 demonstrations, 512 training rows, 256 validation rows.

    No message appears twice, within or across the files.
    """
    rng = random.Random(seed)
    seen: dict[str, dict[str, Any]] = {}
    while len(seen) < 64 + 512 + 256:
        made = ticket(rng)
        seen.setdefault(made["text"], made)
    rows = list(seen.values())
    return {
        "warm_start": [demonstration(r) for r in rows[:64]],
        "train": [reinforcement_row(r) for r in rows[64:576]],
        "validation": [reinforcement_row(r) for r in rows[576:]],
    }


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=2027)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name, rows in make(args.seed).items():
        path = args.out / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


if __name__ == "__main__":
    main()
