"""What the list of models and the settings say reaches the trainer."""

import dataclasses

from core.registry import Registry
from tests.workers.lab import Lab
from workers.supervisor.jobdir import make_spec

MORE = """
chat_template = "own.jinja"
dtype = "float32"
"""


def test_the_list_of_models_goes_before_the_settings(lab: Lab) -> None:
    job = lab.job(lab.queued_job())
    spec = make_spec(lab.context, job)
    assert (spec.dtype, spec.model.chat_template, spec.processes) == ("bfloat16", None, 1)
    models = lab.context.settings.models_file
    models.write_text(models.read_text() + MORE)
    template = models.parent / "own.jinja"
    template.write_text("{{ messages }}")
    context = dataclasses.replace(
        lab.context,
        registry=Registry.load(models),
        settings=lab.context.settings.model_copy(update={"trainer_processes": 2}),
    )
    spec = make_spec(context, job)
    assert (spec.dtype, spec.model.chat_template, spec.processes) == ("float32", template, 2)
