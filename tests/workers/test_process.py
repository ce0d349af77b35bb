"""The trainer as a child process."""

import os
import sys
from pathlib import Path

import pytest

from core.process.environment import clean_environment
from tests.workers.lab import wait_for
from workers.supervisor.process import TrainerProcess


def start(code: str, directory: Path) -> TrainerProcess:
    prelude = "import os, sys, time\nreport = int(os.environ['RFT_REPORT_FD'])\n"
    return TrainerProcess(
        [sys.executable, "-c", prelude + code],
        directory=directory,
        environment=clean_environment(os.environ),
    )


def read_all(process: TrainerProcess) -> list[bytes]:
    lines = []
    while not process.finished:
        lines += process.read_lines(0.1)
    return lines


def test_lines_arrive_whole_and_a_cut_one_is_dropped(tmp_path: Path) -> None:
    process = start(
        "os.write(report, b'one\\ntw'); time.sleep(0.2); os.write(report, b'o\\nthr')", tmp_path
    )
    assert read_all(process) == [b"one", b"two"]
    assert process.wait(10) == 0
    process.close()


def test_long_line_arrives_whole(tmp_path: Path) -> None:
    process = start("open(report, 'wb').write(b'x' * 1_000_000 + b'\\n')", tmp_path)
    assert read_all(process) == [b"x" * 1_000_000]
    process.wait(10)
    process.close()


def test_control_lines_reach_the_trainer_and_none_is_missed_by_a_dead_one(tmp_path: Path) -> None:
    process = start("os.write(report, os.read(int(os.environ['RFT_CONTROL_FD']), 99))", tmp_path)
    process.send({"type": "pause"})
    assert read_all(process) == [b'{"type": "pause"}']
    process.wait(10)
    process.send({"type": "pause"})
    process.close()


@pytest.mark.parametrize(
    ("code", "exit_code"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 9)", -9)]
)
def test_exit_code_is_the_trainers(tmp_path: Path, code: str, exit_code: int) -> None:
    process = start(code, tmp_path)
    assert process.wait(10) == exit_code
    assert process.kill() == exit_code
    process.close()


def test_trainer_that_does_not_exit_is_killed_with_its_children(tmp_path: Path) -> None:
    process = start(
        "import subprocess\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "os.write(report, b'%d\\n' % child.pid)\n"
        "os.close(report)\n"
        "time.sleep(600)",
        tmp_path,
    )
    lines: list[bytes] = []
    wait_for(lambda: lines.extend(process.read_lines(0.1)) or lines)
    child = int(lines[0])
    assert process.wait(0.1) == -9
    wait_for(lambda: not Path(f"/proc/{child}").exists() or _is_zombie(child))
    process.close()


def test_trainer_is_waited_for_no_longer_than_allowed(tmp_path: Path) -> None:
    process = start("os.close(report); time.sleep(600)", tmp_path)
    assert process.wait(600, keep_on=lambda: False) == -9
    process.close()


def test_message_after_the_end_reaches_nobody(tmp_path: Path) -> None:
    process = start("pass", tmp_path)
    process.wait(10)
    process.close()
    # The numbers of the closed descriptors are given to the next that opens one.
    pipes = [os.pipe() for _ in range(2)]
    process.send({"type": "checkpoint_stored"})
    for reading, writing in pipes:
        os.close(writing)
        assert os.read(reading, 99) == b""
        os.close(reading)


def _is_zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_command_that_does_not_exist_ends_like_a_trainer_that_fails(tmp_path: Path) -> None:
    process = TrainerProcess(
        ["/no/such/program"], directory=tmp_path, environment=clean_environment(os.environ)
    )
    assert process.wait(10) == 1
    assert "/no/such/program" in process.log_tail() or "No such file" in process.log_tail()
    process.close()


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    process = start("pass", tmp_path)
    process.wait(10)
    process.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_environment_keeps_what_runs_a_trainer_and_no_secret() -> None:
    worker = {
        "PATH": "/bin",
        "CUDA_VISIBLE_DEVICES": "0",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_API_KEY": "secret",
        "RFT_DATABASE_URL": "secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "HF_TOKEN": "secret",
        "SOMETHING_NEW": "secret",
    }
    seen = clean_environment(worker)
    assert "secret" not in seen.values()
    assert set(seen) == {name for name, value in worker.items() if value != "secret"} | {
        "PYTHONPATH"
    }
