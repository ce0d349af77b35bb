"""Awkward files that people met in practice, with the right answer to each."""

import base64
import io
import json
from pathlib import Path

from rft.dataset import Report, iter_rows, validate

CASES = {
    case["id"]: case["input"]
    for case in map(json.loads, Path(__file__).with_name("dataset_cases.jsonl").open())
}


def check(case: str, kind: str = "reinforcement") -> Report:
    return validate(io.BytesIO(content(case)), kind)


def content(case: str) -> bytes:
    given = CASES[case]
    return base64.b64decode(given["bytes_b64"]) if "bytes_b64" in given else given["text"].encode()


def rules(report: Report) -> list[tuple[int, str]]:
    return [(problem.line, problem.rule) for problem in report.errors]


def test_byte_order_mark_is_stripped_once() -> None:
    report = check("jsonl-bom")
    assert report.ok
    assert (report.rows, report.valid_rows) == (2, 2)
    assert dict(report.warning_counts) == {"bom_stripped": 1}
    assert len(list(iter_rows(io.BytesIO(content("jsonl-bom"))))) == 2


def test_byte_order_mark_inside_the_file_is_an_error_on_its_line() -> None:
    report = validate(io.BytesIO(content("jsonl-bom") + content("jsonl-bom")))
    assert rules(report) == [(3, "bom_inside")]
    assert (report.rows, report.valid_rows) == (4, 3)


def test_crlf_and_blank_lines() -> None:
    report = check("jsonl-crlf-blank-tail")
    assert report.ok
    assert report.rows == 2
    [warning] = report.warnings
    assert (warning.rule, warning.line, warning.count) == ("blank_lines", 2, 3)
    rows = list(iter_rows(io.BytesIO(content("jsonl-crlf-blank-tail"))))
    assert [row["answer"] for row in rows] == ["1", "2"]


def test_missing_final_newline() -> None:
    assert validate(io.BytesIO(content("jsonl-crlf-blank-tail").strip())).rows == 2


def test_duplicate_keys_name_every_path() -> None:
    report = check("jsonl-dup-keys")
    assert {(p.rule, p.path) for p in report.errors} == {
        ("duplicate_key", "/answer"),
        ("duplicate_key", "/messages/0/content"),
    }


def test_numbers_that_json_does_not_have() -> None:
    report = check("jsonl-nan-inf")
    assert [(p.line, p.rule, p.path) for p in report.errors] == [
        (1, "non_finite_number", "/target"),
        (2, "non_finite_number", "/target"),
    ]


def test_lone_surrogate_is_refused_and_shown_as_text() -> None:
    report = check("jsonl-lone-surrogate")
    [problem] = report.errors
    assert (problem.rule, problem.path) == ("lone_surrogate", "/messages/0/content")
    assert "\\ud83d" in problem.message
    json.dumps(report.to_dict(), ensure_ascii=False).encode()


def test_surrogate_pair_is_accepted() -> None:
    text = CASES["jsonl-lone-surrogate"]["text"].replace("\\ud83d", "\\ud83d\\ude00")
    assert validate(io.BytesIO(text.encode())).ok


def test_latin1_names_the_first_bad_byte_once() -> None:
    data = base64.b64decode(CASES["jsonl-not-utf8"]["files"]["latin1"])
    [problem] = validate(io.BytesIO(data * 3)).errors
    assert (problem.rule, problem.offset) == ("not_utf8", data.index(0xE9))


def test_utf16_is_named() -> None:
    data = base64.b64decode(CASES["jsonl-not-utf8"]["files"]["utf16"])
    for written in (data, data[2:]):
        [problem] = validate(io.BytesIO(written)).errors
        assert problem.rule == "not_utf8"
        assert "UTF-16" in problem.message
        assert "UTF-8" in problem.mend


def test_broken_json_names_line_and_column_all_at_once() -> None:
    report = check("jsonl-unquoted-and-inner-quote")
    assert rules(report) == [(2, "invalid_json"), (3, "invalid_json")]
    assert "column 45" in report.errors[0].message
    assert "column 2" in report.errors[1].message
    lines = CASES["jsonl-unquoted-and-inner-quote"]["text"].split("\n")
    assert report.errors[1].offset == len(lines[0]) + len(lines[1]) + 2 + 1
    assert report.valid_rows == 1


def test_huge_line_is_refused_and_the_rest_is_checked() -> None:
    row = b'{"messages":[{"role":"user","content":"q"}]}\n'

    class Generated:
        """64 MiB that are never whole in memory."""

        def __init__(self) -> None:
            self.pieces = [row, b'{"messages":[{"role":"user","content":"']
            self.pieces += [b"a" * 2**20] * 64 + [b'"}]}\n', row]

        def read(self, _size: int) -> bytes:
            return self.pieces.pop(0) if self.pieces else b""

    report = validate(Generated())
    assert rules(report) == [(2, "max_line_bytes")]
    assert (report.rows, report.valid_rows) == (3, 2)


def test_tool_call_without_content() -> None:
    text = CASES["msg-toolcall-null-content"]["text"]
    without = text.replace('"content":null,', "")
    for written in (text, without):
        report = validate(io.BytesIO(written.encode()))
        assert report.ok
        assert not report.warnings
        assert report.needs == {"tools": 1}
    unknown = text.replace('"tool_call_id":"c1"', '"tool_call_id":"c2"')
    assert rules(validate(io.BytesIO(unknown.encode()))) == [(1, "unknown_tool_call_id")]


def test_null_and_empty_content() -> None:
    report = check("msg-null-content-no-tools")
    assert rules(report) == [(1, "content_required")]
    assert [(w.line, w.rule) for w in report.warnings] == [(2, "empty_assistant")]
    second = content("msg-null-content-no-tools").split(b"\n")[1]
    answered = second.replace(
        b'{"role":"user","content":"r"}', b'{"role":"assistant","content":""}'
    )
    assert rules(validate(io.BytesIO(answered), "supervised"))[-1] == (1, "empty_target")


def test_answer_inside_the_messages() -> None:
    [problem] = check("msg-last-role-assistant").errors
    assert problem.rule == "last_message_not_user"
    assert "item." in problem.mend
    assert check("msg-last-role-assistant", "supervised").ok
    assert check("msg-last-role-assistant", "warm_start").ok


def test_image_keeps_the_file_valid_and_is_reported_as_a_need() -> None:
    report = check("msg-image-on-text-model")
    assert report.ok
    assert report.needs == {"image": 1}
