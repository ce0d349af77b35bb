"""What a supervisor does for dry runs that it does not do for training."""

from typing import Any

from core.judges import JudgeBook
from core.models import DRY_RUN, Job
from core.settings import Settings
from trainer.spec import DryRunSpec


def dry_run_spec(settings: Settings, job: Job) -> DryRunSpec | None:
    """The trainer's orders for a dry run whose plan is resolved; ``None`` for training."""
    if job.kind != DRY_RUN or job.plan is None:
        return None
    return DryRunSpec(
        rows=job.plan["rows"],
        samples_per_row=job.plan["samples_per_row"],
        price_per_hour=settings.price_per_hour,
        currency=settings.price_currency,
    )


def with_judge_prices(report: dict[str, Any], judges: JudgeBook) -> dict[str, Any]:
    """The report with the price of the judges' tokens, where the operator gave prices."""
    estimate = report["estimate"]
    priced = [{**each, "cost": _price(each, judges)} for each in estimate["judge_tokens"]]
    return {**report, "estimate": {**estimate, "judge_tokens": priced}}


def _price(tokens: dict[str, Any], judges: JudgeBook) -> dict[str, float] | None:
    ends = {}
    for end in ("low", "high"):
        prompt = round(tokens[end] * tokens["prompt_share"])
        price = judges.price(
            tokens["model"], prompt_tokens=prompt, completion_tokens=tokens[end] - prompt
        )
        if price is None:
            return None
        ends[end] = price
    return ends
