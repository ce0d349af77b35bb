"""A trainer that learns nothing but speaks the real one's pipe protocol, word for word.

    python fake_trainer.py SCRIPT.json JOBDIR

Its "weights" are a chain of hashes: every step's reward follows from the state before it, so a run
that resumed from the wrong place, skipped a step or took one twice shows another curve.

SCRIPT.json names what happens: lengths, a pace, and ``mishaps`` at named points (see ``_point``).
Each mishap happens ``times`` times over all runs; the files beside the script remember that.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import zstandard

EXIT_CODES = {
    "done": 0,
    "error": 1,
    "paused": 3,
    "out_of_memory": 4,
    "diverged": 5,
    "grader_failures": 6,
    "no_disk": 7,
    "invalid_data": 8,
    "weights_mismatch": 9,
    "no_spread": 10,
    "entropy_collapse": 11,
    "kl_runaway": 12,
    "unusable_model": 13,
    "rank_lost": 14,
}
DEFAULTS: dict[str, Any] = {
    "warm_steps": 2,
    "steps": 6,
    "checkpoint_every": 2,
    "step_s": 0.02,
    "model_bytes": 64,
    "children": 0,
    "mishaps": {},
}


class FakeTrainer:
    """One run over a job directory."""

    def __init__(self, script: Path, job_dir: Path) -> None:
        self.memory = script.parent
        self.plan = DEFAULTS | json.loads(script.read_text())
        self.dir = job_dir
        self.spec = json.loads((job_dir / "spec.json").read_text())
        self.reports = os.fdopen(int(os.environ["RFT_REPORT_FD"]), "w")
        self.paused = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()
        self.state = hashlib.sha256(str(self.spec["seed"]).encode()).hexdigest()
        self.step, self.stopped = 0, False
        self.resumed = (job_dir / "resume").is_dir()
        if self.resumed:
            saved = json.loads((job_dir / "resume/state/progress.json").read_text())
            self.state, self.step = saved["state"], saved["step"]

    def run(self) -> None:
        """Everything a job does, in the real order."""
        self._remember()
        total = self.plan["steps"]
        self._phase("loading")
        if self.spec["method"]["dry_run"]:
            self._dry_run()
        self.say("started", step=self.step, total_steps=total, resumed=self.resumed)
        if not self.resumed:
            self._phase("base_evaluation")
            self._evaluate("base")
            if self.spec["method"]["warm_start"]:
                self._warm_start()
            self._checkpoint("rl", self.step, final=False, metrics={})
        self._phase("rl")
        if self.step == 0 and self.spec["method"]["spread_check"] != "off":
            self._probe()
        while self.step < total and not self.stopped:
            self._rl_step()
        self._export()

    def _dry_run(self) -> None:
        plan = self.spec["method"]["dry_run"]
        total = plan["rows"] * plan["samples_per_row"]
        self.say("started", step=0, total_steps=total, resumed=False)
        self._phase("dry_run")
        for done in (total // 2, total):
            self._point(f"dry_run:{done}")
            self.say("progress", phase="dry_run", done=done, total=total)
        folder = self.dir / "out/reports"
        folder.mkdir(parents=True)
        (folder / "samples.jsonl").write_text('{"row": 0}\n')
        self.say("result_file", filename="samples.jsonl", path="out/reports/samples.jsonl")
        shutil.copy(Path(__file__).with_name("dry_run_report.json"), folder / "dry_run.json")
        self.say("dry_run", path="out/reports/dry_run.json")
        self.end("done", "Training is complete.")

    def _warm_start(self) -> None:
        self._phase("warm_start")
        total = self.plan["warm_steps"]
        for step in range(1, total + 1):
            self._point(f"warm_start:{step}")
            data = {"train_loss": 1.0 + self._advance()}
            self.say("metrics", phase="warm_start", step=step, total_steps=total, data=data)
        self._phase("warm_start_evaluation")
        self._evaluate("warm_start")

    def _probe(self) -> None:
        groups = {"total": 2, "with_spread": 2, "all_solved": 0, "all_same": 0, "too_few": 0}
        said = "2 of 2 groups (100%) have a spread of scores to learn from."
        self.say("probe", level="info", message=said, data={"groups": groups})

    def _rl_step(self) -> None:
        total, step = self.plan["steps"], self.step + 1
        self._point(f"step:{step}")
        time.sleep(self.plan["step_s"])
        data = {"step": step, "total_steps": total, "train_mean_reward": self._advance()}
        self.step = step
        due = step % self.plan["checkpoint_every"] == 0
        if step == total:
            self._phase("final_evaluation")
            self._evaluate("final")
        self._rollouts(step)
        data |= self._validation() if due else dict.fromkeys(self._validation())
        self.say("metrics", phase="rl", step=step, total_steps=total, data=data)
        self._point(f"after_step:{step}")
        pausing = self.paused.is_set()
        if step < total and (due or pausing):
            self._checkpoint("rl", step, final=False, metrics=data)
        if step < total and pausing:
            self.end("paused", f"Paused after step {step}.")

    def _export(self) -> None:
        self._phase("export")
        path = self.dir / "out/reports/evaluation.json"
        path.write_text(json.dumps({"stages": ["base", "warm_start", "final"], "gains": []}))
        self.say("result_file", filename="evaluation.json", path=self._relative(path))
        self._checkpoint("export", self.step, final=True, metrics=self._validation())
        self.end("done", "Training is complete.")

    def _advance(self) -> float:
        self.state = hashlib.sha256(self.state.encode()).hexdigest()
        return int(self.state[:8], 16) / 16**8

    def _validation(self) -> dict[str, float]:
        reward = int(self.state[8:16], 16) / 16**8
        return {"full_valid_mean_reward": reward, "full_valid_mean_parse_error": 0.0}

    def _phase(self, phase: str) -> None:
        self.say("phase", phase=phase)
        self._point(phase)

    def _evaluate(self, stage: str) -> None:
        path = self.dir / f"out/reports/evaluation_{stage}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        mean = self._validation()["full_valid_mean_reward"]
        figure = {"mean": mean, "low": mean - 0.1, "high": mean + 0.1}
        held_out = {"rows": 4, "failures": 0, "reward": figure, "solved": figure}
        summary = {
            "stage": stage,
            "step": self.step,
            "selection": {"rows": 0, "reward": None, "solved": None},
            "held_out": held_out,
            "held_out_rows": [{"row": 0, "score": mean, "solved": False}],
        }
        path.write_text(json.dumps({**summary, "rows": []}))
        self.say(
            "evaluation", stage=stage, step=self.step, path=self._relative(path), summary=summary
        )

    def _rollouts(self, step: int) -> None:
        path = self.dir / f"out/rollouts/{step}.jsonl.zst"
        path.parent.mkdir(parents=True, exist_ok=True)
        sample = {
            "row": step - 1,
            "group": 0,
            "messages": [{"role": "user", "content": f"Say {step}."}],
            "text": self.state,
            "token_ids": [1, 2],
            "logprobs": [-0.5, -0.25],
            "truncated": False,
            "outcome": {
                "outcome": "score",
                "value": int(self.state[:8], 16) / 16**8,
                "sub_scores": {},
                "notes": [],
            },
            "advantage": 0.0,
            "grader_latency_s": 0.001,
            "traces": [],
        }
        line = json.dumps(sample).encode() + b"\n"
        path.write_bytes(zstandard.ZstdCompressor().compress(line))
        self.say("rollouts", step=step, split="train", path=self._relative(path), count=1)

    def _checkpoint(self, phase: str, step: int, *, final: bool, metrics: dict[str, Any]) -> None:
        folder = self.dir / f"out/checkpoints/{phase}-{step}"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "model").mkdir(parents=True)
        weights = (self.state * (self.plan["model_bytes"] // 64)).encode()
        (folder / "model/adapter_model.safetensors").write_bytes(weights)
        (folder / "model/adapter_config.json").write_text("{}")
        self._point(f"checkpoint:{phase}:{step}")
        if not final:
            (folder / "state").mkdir()
            saved = {"state": self.state, "step": self.step}
            (folder / "state/progress.json").write_text(json.dumps(saved))
        self.say(
            "checkpoint",
            phase=phase,
            step=step,
            path=self._relative(folder),
            kind="adapter",
            final=final,
            state=not final,
            metrics=metrics,
            trained_tokens=1000 * self.step,
        )
        self._point(f"after_checkpoint:{phase}:{step}")

    def _point(self, name: str) -> None:
        """A place where a mishap may be scripted: a phase, ``step:3``, ``checkpoint:rl:2``, …"""
        for point in (name, name.split(":")[0] + ":*"):
            mishap = self.plan["mishaps"].get(point)
            if mishap and self._count(f"mishap-{point}") <= mishap.get("times", 1):
                self._happen(mishap["do"])

    def _happen(self, what: str) -> None:
        if what == "kill":
            self.reports.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        elif what == "hang":
            time.sleep(600)
        elif what == "wait":
            # Until the test lets it go on.
            while not (self.memory / "go").exists():
                time.sleep(0.01)
        elif what == "warn":
            said = "50% of max_tokens is used: 5 of 10."
            self.say("warning", message=said, code="budget", data={"share": 0.5})
        elif what == "plateau":
            said = "Training ends here: the reward is flat."
            self.say("stopped", reason=what, message=said, data={"steps": [0, 2, 4]})
            self.stopped = True
        elif what == "garble":
            self.reports.write("not a report\n")
            self.reports.flush()
        else:
            self.end(what, f"Scripted: {what}.")

    def _count(self, name: str) -> int:
        path = self.memory / name.replace(":", "_").replace("*", "any")
        with path.open("a") as file:
            file.write("x")
        return path.stat().st_size

    def _remember(self) -> None:
        with (self.memory / "runs.jsonl").open("a") as file:
            run = {"pid": os.getpid(), "step": self.step, "resumed": self.resumed}
            file.write(json.dumps(run | {"environment": dict(os.environ)}) + "\n")
        for _ in range(self.plan["children"]):
            child = subprocess.Popen(["sleep", "600"])
            with (self.memory / "children").open("a") as file:
                file.write(f"{child.pid}\n")

    def _listen(self) -> None:
        with os.fdopen(int(os.environ["RFT_CONTROL_FD"])) as control:
            for line in control:
                with (self.memory / "control.jsonl").open("a") as file:
                    file.write(line)
                if json.loads(line)["type"] == "pause":
                    self.paused.set()
        os._exit(1)

    def _relative(self, path: Path) -> str:
        return str(path.relative_to(self.dir))

    def say(self, kind: str, /, **fields: Any) -> None:
        """Send one report."""
        self.reports.write(json.dumps({"type": kind, **fields}, allow_nan=False) + "\n")
        self.reports.flush()

    def end(self, reason: str, message: str) -> None:
        """Send the last report and exit with its code."""
        self.say("ended", reason=reason, message=message, examples=[])
        sys.exit(EXIT_CODES[reason])


if __name__ == "__main__":
    FakeTrainer(Path(sys.argv[1]), Path(sys.argv[2])).run()
