"""Real vLLM servers behind the service: base model, an adapter, full weights.

The log-prob that a server gives for the token it chose is compared with the one that transformers
gives on the same weights. Every set of weights has its own value, far from the others', so a server
that uses the wrong ones is found out.
"""

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
import torch
from peft import LoraConfig, get_peft_model
from pydantic import SecretStr
from transformers import AutoModelForCausalLM, AutoTokenizer

from core import manifest
from core.process.guard import descendants
from core.registry import Registry
from core.settings import Settings
from core.store import ObjectStore
from tests.processes import await_gone
from tests.servers import ACCESS_KEY, SECRET_KEY, S3Server, free_ports
from tests.workers.processes import program
from workers.serving.engine import RANKS, Engine, EngineSpec

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MODELS_FILE = Path(__file__).parents[2] / "models.toml"
BASE = Registry.load(MODELS_FILE).all()[0]
MESSAGES = [{"role": "user", "content": "Name a colour of the rainbow."}]
TOKEN = "between-us"
#: bf16 arithmetic in another order; the weights differ from each other by more than ten times it.
TOLERANCE = 0.15


@dataclass
class Service:
    """The running service, and what transformers says of each set of weights."""

    client: httpx.Client
    pid: int
    folder: Path
    expected: dict[str, "Distribution"]

    def ask(self, weights: str, **fields: Any) -> httpx.Response:
        """Ask for one greedy token, or what `fields` say."""
        body = {"messages": MESSAGES, "temperature": 0, "max_tokens": 1, "logprobs": True}
        return self.post("/v1/chat/completions", weights, {**body, **fields})

    def go_on(self, weights: str, **fields: Any) -> httpx.Response:
        """Ask for a few greedy tokens after a prompt."""
        body = {"prompt": "The capital of France is", "temperature": 0, "max_tokens": 4}
        return self.post("/v1/completions", weights, {**body, **fields})

    def post(self, path: str, weights: str, body: dict[str, Any]) -> httpx.Response:
        """Send a body for one of the sets of weights."""
        return self.client.post(
            path,
            json={"model": f"public-{weights}", **body},
            headers={"x-rft-token": TOKEN, "x-rft-model": target(weights)},
        )


Distribution = Callable[[str], float]


def target(weights: str) -> str:
    artifact = None if weights == "base" else f"models/{weights}/model"
    kind = None if weights == "base" else weights
    return json.dumps({"base": BASE.id, "artifact": artifact, "kind": kind})


def first_token(model: torch.nn.Module) -> Distribution:
    """Return token text → log-prob of being the first token of the answer."""
    tokenizer = AutoTokenizer.from_pretrained(BASE.path)
    prompt = tokenizer.apply_chat_template(
        MESSAGES, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    with torch.no_grad():
        logprobs = model(**prompt).logits[0, -1].float().log_softmax(-1)
    return lambda token: logprobs[
        tokenizer.convert_tokens_to_ids(tokenizer.tokenize(token))[0]
    ].item()


def make_weights(folder: Path) -> dict[str, Distribution]:
    """Write an adapter and full weights below `folder`, all differing strongly from the base."""
    expected = {}
    model = AutoModelForCausalLM.from_pretrained(BASE.path, dtype=torch.bfloat16)
    expected["base"] = first_token(model)
    torch.manual_seed(1)
    adapted = get_peft_model(
        model, LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"])
    )
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.3)
    adapted.save_pretrained(folder / "adapter")
    expected["adapter"] = first_token(adapted)
    full = adapted.unload()
    with torch.no_grad():
        for layer in full.model.layers[:4]:
            layer.mlp.down_proj.weight.mul_(0.2)
    full.save_pretrained(folder / "full")
    expected["full"] = first_token(full)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        for kind in ("adapter", "full"):
            shutil.copy(BASE.path / name, folder / kind)
    return expected


@pytest.fixture(scope="module")
def service(
    s3_server_session: S3Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("serving")
    [port] = free_ports(1)
    settings = Settings(
        s3_endpoint_url=s3_server_session.endpoint_url,
        s3_access_key_id=ACCESS_KEY,
        s3_secret_access_key=SecretStr(SECRET_KEY),
        s3_bucket="serving",
        models_file=MODELS_FILE,
        data_dir=folder / "data",
        serving_token=SecretStr(TOKEN),
        serving_engines=3,
    )
    store = ObjectStore.from_settings(settings)
    store.ensure_bucket()
    expected = make_weights(folder)
    for name in ("adapter", "full"):
        manifest.commit(store, f"models/{name}/model", folder / name)
    command = ("-m", "uvicorn", "--factory", "workers.serving.app:create_app", "--port", str(port))
    with (
        program(*command, settings=settings, log=folder / "log") as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=300) as client,
    ):
        await_health(client, process.poll)
        yield Service(client, process.pid, folder, expected)
        left = descendants(process.pid)
        assert len(left) > 2
        process.kill()
        await_gone(left)


def await_health(client: httpx.Client, poll: Callable[[], int | None]) -> None:
    while poll() is None:
        try:
            assert client.get("/health").is_success
            return
        except httpx.ConnectError:
            continue
    raise AssertionError("the service ended")


@pytest.mark.parametrize("weights", ["base", "adapter", "full"])
def test_answers_come_from_the_named_weights(service: Service, weights: str) -> None:
    answer = service.ask(weights)
    assert answer.status_code == 200, answer.text
    content = answer.json()
    assert content["model"] == f"public-{weights}"
    [entry] = content["choices"][0]["logprobs"]["content"]
    token, logprob = entry["token"], entry["logprob"]
    assert logprob == pytest.approx(service.expected[weights](token), abs=TOLERANCE)
    for other in {"base", "adapter", "full"} - {weights}:
        assert abs(logprob - service.expected[other](token)) > TOLERANCE


def test_a_server_that_takes_adapters_answers_with_theirs(service: Service) -> None:
    """As on a GPU; the service merges them on a CPU."""

    async def ask() -> dict[str, Any]:
        spec = EngineSpec(BASE.path, BASE.context_tokens, max_lora_rank=RANKS[0])
        body = {"model": "a", "messages": MESSAGES, "temperature": 0, "max_tokens": 1}
        with tempfile.TemporaryDirectory(prefix="rft-engine-") as sockets:
            engine = Engine(spec, socket=Path(sockets, "s"), log=service.folder / "engine.log")
            try:
                await engine.start()
                await engine.load_adapter("a", service.folder / "adapter")
                answer = await engine.client.post(
                    "/v1/chat/completions", json={**body, "logprobs": True}
                )
            finally:
                await engine.stop()
        entry: dict[str, Any] = answer.json()["choices"][0]["logprobs"]["content"][0]
        return entry

    entry = asyncio.run(ask())
    expected = service.expected["adapter"](entry["token"])
    assert entry["logprob"] == pytest.approx(expected, abs=TOLERANCE)


def test_the_base_model_is_itself_again_after_an_adapter(service: Service) -> None:
    service.ask("adapter")
    entry = service.ask("base").json()["choices"][0]["logprobs"]["content"][0]
    assert entry["logprob"] == pytest.approx(
        service.expected["base"](entry["token"]), abs=TOLERANCE
    )


def test_a_stream_says_what_the_whole_answer_says(service: Service) -> None:
    fields = {"max_tokens": 12, "logprobs": False}
    whole = service.ask("adapter", **fields).json()["choices"][0]["message"]["content"]
    streamed = service.ask("adapter", stream=True, **fields)
    lines = [line.removeprefix("data: ") for line in streamed.text.splitlines() if line]
    assert lines.pop() == "[DONE]"
    chunks = [json.loads(line) for line in lines]
    assert {chunk["model"] for chunk in chunks} == {"public-adapter"}
    deltas = [chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks]
    assert "".join(deltas) == whole


def test_a_bad_parameter_is_refused_by_name(service: Service) -> None:
    answer = service.ask("base", temperature=-1)
    assert answer.status_code == 400
    assert "temperature" in answer.json()["error"]["message"]


#: Longer than what vLLM reads at once, so that a seeded generator has to be wound back.
LONG = [{"role": "user", "content": "word " * 5000 + "Say something."}]
COLOUR = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}, "warm": {"type": "boolean"}},
    "required": ["colour", "warm"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "paint", "parameters": COLOUR}}


def text(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    content: str = answer.json()["choices"][0]["message"]["content"]
    return content


def test_a_seed_gives_the_same_answer_however_the_prompt_was_read(service: Service) -> None:
    fields = {"messages": LONG, "temperature": 1.5, "max_tokens": 3, "n": 4}

    def tokens(seed: int) -> list[str]:
        choices = service.ask("base", seed=seed, **fields).json()["choices"]
        return [token["token"] for each in choices for token in each["logprobs"]["content"]]

    in_parts = tokens(5)
    from_the_cache = tokens(5)
    # The arithmetic differs in its last bits, so that a close decision may fall otherwise.
    assert equal_places(in_parts, from_the_cache) >= 8
    assert equal_places(tokens(6), from_the_cache) < 8
    assert tokens(5) == from_the_cache


def equal_places(one: list[str], other: list[str]) -> int:
    return sum(left == right for left, right in zip(one, other, strict=False))


def test_an_answer_keeps_to_its_schema(service: Service) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "c", "schema": COLOUR}}
    fields = {"temperature": 1, "max_tokens": 64, "n": 8, "seed": 1, "logprobs": False}
    answer = service.ask("base", response_format=schema, **fields).json()
    whole = [choice for choice in answer["choices"] if choice["finish_reason"] == "stop"]
    assert whole
    for choice in whole:
        jsonschema.validate(json.loads(choice["message"]["content"]), COLOUR)


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "paint"}}], ids=str
)
def test_a_forced_call_is_made_with_arguments_that_fit(service: Service, choice: Any) -> None:
    fields = {"max_tokens": 64, "logprobs": False, "parallel_tool_calls": False}
    answer = service.ask("base", tools=[TOOL], tool_choice=choice, **fields).json()
    message = answer["choices"][0]["message"]
    [call] = message["tool_calls"]
    assert call["function"]["name"] == "paint"
    jsonschema.validate(json.loads(call["function"]["arguments"]), COLOUR)
    result = {"role": "tool", "tool_call_id": call["id"], "content": "done"}
    assert text(service.ask("base", messages=[*MESSAGES, message, result], tools=[TOOL]))


def test_tools_that_the_template_drops_are_told_to_the_model(service: Service) -> None:
    without = service.ask("base").json()["usage"]["prompt_tokens"]
    told = service.ask("base", tools=[TOOL]).json()["usage"]["prompt_tokens"]
    silent = service.ask("base", tools=[TOOL], tool_choice="none").json()["usage"]["prompt_tokens"]
    assert silent == without < told


def test_several_answers_without_chance_are_the_likeliest_one(service: Service) -> None:
    fields = {"max_tokens": 6, "logprobs": False}
    likeliest = text(service.ask("base", **fields))
    answers = service.ask("base", n=3, **fields).json()["choices"]
    assert [each["message"]["content"] for each in answers] == [likeliest] * 3


def test_images_are_refused_by_a_model_that_reads_text(service: Service) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    answer = service.ask("base", messages=[{"role": "user", "content": [image]}])
    assert answer.status_code == 400
    assert "reads text only" in answer.json()["error"]["message"]


def test_a_schema_that_is_none_is_refused(service: Service) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "banana"}}}
    answer = service.ask("base", tools=[tool], tool_choice="required")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "tools")


def test_a_conversation_that_is_too_long_has_its_code(service: Service) -> None:
    long = [{"role": "user", "content": "word " * 9000}]
    for fields in (
        {"messages": long},
        {"max_tokens": 9000},
        {"max_completion_tokens": 9000, "max_tokens": None},
    ):
        error = service.ask("base", **fields).json()["error"]
        assert (error["code"], error["type"]) == (
            "context_length_exceeded",
            "invalid_request_error",
        )
    error = service.go_on("base", prompt="word " * 9000).json()["error"]
    assert (error["param"], error["code"]) == ("prompt", "context_length_exceeded")


def test_prompts_are_gone_on_from(service: Service) -> None:
    plain = service.go_on("full").json()
    assert plain["model"] == "public-full"
    several = service.go_on("full", prompt=["The capital of France is", "One two three"]).json()
    assert [choice["index"] for choice in several["choices"]] == [0, 1]
    assert several["choices"][0]["text"] == plain["choices"][0]["text"]
    echoed = service.go_on("full", echo=True, max_tokens=0).json()
    assert echoed["choices"][0]["text"] == "The capital of France is"
    assert echoed["usage"]["completion_tokens"] == 0


def test_the_best_of_several_is_the_likeliest(service: Service) -> None:
    fields = {"temperature": 1, "seed": 4, "logprobs": 0}

    def likelihood(choice: dict[str, Any]) -> float:
        logprobs: list[float] = choice["logprobs"]["token_logprobs"]
        return sum(logprobs) / len(logprobs)

    everything = service.go_on("base", n=6, **fields).json()["choices"]
    [best] = service.go_on("base", best_of=6, **fields).json()["choices"]
    assert best["text"] == max(everything, key=likelihood)["text"]


def test_a_server_that_is_killed_is_an_error_and_then_replaced(service: Service) -> None:
    with service.client.stream(
        "POST",
        "/v1/chat/completions",
        json={
            "model": "public-base",
            "messages": MESSAGES,
            "max_tokens": 8000,
            "logit_bias": {"2": -100},
            "stream": True,
        },
        headers={"x-rft-token": TOKEN, "x-rft-model": target("base")},
    ) as answer:
        lines = answer.iter_lines()
        next(lines)
        for pid in descendants(service.pid):
            with suppress(ProcessLookupError):  # some end with their parents
                os.kill(pid, signal.SIGKILL)
        events = [json.loads(line.removeprefix("data: ")) for line in lines if "error" in line[:20]]
    assert len(events) == 1
    assert service.ask("base").status_code == 200
