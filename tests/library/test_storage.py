"""Files written all at once, JSON of strangers, weights and their cards; and what is refused."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import exformer
from exformer.storage.check_weights import check_weights
from exformer.storage.files import (
    check_writable,
    make_folder,
    read_json,
    read_json_lines,
    remove_partial_files,
    replace_file,
    staged_file,
    write_json,
)
from exformer.storage.safetensors_file import (
    pack_weights,
    read_card,
    read_tensors,
    replaced_weights,
)
from exformer.storage.text_files import decode_text
from exformer.storage.upgrade import upgrade_weights


def save_weights(path: Path, model: nn.Module, *, card: dict[str, Any], **options: Any) -> None:
    with replaced_weights(path, *pack_weights(model, card=card, **options)):
        pass


def load_weights(path: Path, model: nn.Module) -> None:
    tensors, _ = read_tensors(path)
    check_weights(tensors, model, path=path)
    model.load_state_dict(tensors)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_link_stays_a_link_and_a_pipe_a_pipe(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    for text in (b"first", b"second"):
        replace_file(link, text)
        assert (link.is_symlink(), target.read_bytes()) == (True, text)
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    replace_file(tmp_path / "pipe", b"through")
    assert (tmp_path / "pipe").is_fifo()
    assert os.read(reader, 100) == b"through"
    os.close(reader)


def test_a_file_that_is_not_given_its_name_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"old")
    with staged_file(tmp_path / "x", b"new"):
        assert len(list(tmp_path.iterdir())) == 2
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x", b"old")]


def test_synced_file_is_whole_and_unnamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, bool]] = []
    found = lambda file: (os.fstat(file).st_size, (tmp_path / "x").exists())  # noqa: E731
    monkeypatch.setattr(os, "fsync", lambda file: seen.append(found(file)))
    replace_file(tmp_path / "x", b"text")
    assert seen == [(4, False)]


def test_what_the_system_says_names_the_final_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match=r"nowhere/x'$"):
        replace_file(tmp_path / "nowhere" / "x", b"text")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"file/x'$"):
        replace_file(tmp_path / "file" / "x", b"text")

    def refuse(part: Path, final: Path) -> None:
        raise PermissionError(13, "Permission denied", str(part))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError, match=r"file'$"):
        replace_file(tmp_path / "file", b"text")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_loop_of_links_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="a'"):
        replace_file(tmp_path / "a", b"text")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_symlink()) == ["a", "b"]


_PRINTS = """
from exformer.storage.files import replace_file
print("printed")
replace_file("/dev/stdout", b"written\\n")
"""


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="this system has no /dev/stdout")
@pytest.mark.parametrize("how", ["wb", "ab"])
def test_the_standard_output_is_written_to(tmp_path: Path, how: str) -> None:
    own = os.environ | {"PYTHONPATH": str(Path(exformer.__file__).parents[1]), "PYTHONUNBUFFERED": ""}
    command = [sys.executable, "-c", _PRINTS]
    assert subprocess.run(command, env=own, stdout=subprocess.PIPE).stdout == b"printed\nwritten\n"
    file = tmp_path / "file"
    file.write_bytes(b"earlier\n")
    with file.open(how) as out:
        subprocess.run(command, env=own, stdout=out, check=True)
    assert file.read_bytes() == (b"earlier\n" if how == "ab" else b"") + b"printed\nwritten\n"


def test_a_file_keeps_its_mode_and_a_name_may_be_long(tmp_path: Path) -> None:
    path, plain = tmp_path / ("n" * 250), tmp_path / "plain"
    plain.touch()
    for mode in (plain.stat().st_mode, 0o100600, 0o100640):
        replace_file(path, b"text")
        assert path.stat().st_mode == mode
        path.chmod(0o640 if mode == 0o100600 else 0o600)
    assert path.read_bytes() == b"text"


def test_weights_and_their_card(tmp_path: Path) -> None:
    model, path = nn.Linear(5, 3), tmp_path / "small.safetensors"
    save_weights(path, model, card={"recipe": "none", "BLEU": 41.5, "name": "più"})
    assert read_card(path) == {"recipe": "none", "BLEU": 41.5, "name": "più"}
    assert "più" in (tmp_path / "small.json").read_text(encoding="utf-8")
    other = nn.Linear(5, 3)
    load_weights(path, other)
    assert torch.equal(other.weight, model.weight)
    assert torch.equal(other.bias, model.bias)
    with pytest.raises(ValueError, match="does not fit the model"):
        load_weights(path, nn.Linear(2, 2))


def test_weights_in_half_the_bytes(tmp_path: Path) -> None:
    model, path = nn.Linear(64, 64), tmp_path / "half.safetensors"
    model.register_buffer("count", torch.tensor([70_001]))
    save_weights(path, model, card={}, dtype=torch.float16)
    assert path.stat().st_size < 0.6 * 4 * 64 * 65
    other = nn.Linear(64, 64)
    other.register_buffer("count", torch.tensor([0]))
    load_weights(path, other)
    assert other.weight.dtype == torch.float32
    assert torch.equal(other.weight, model.weight.half().float())
    assert other.count.item() == 70_001
    before = path.read_bytes()
    nn.init.constant_(model.bias, 1e5)
    with pytest.raises(ValueError, match=r"bias has numbers that torch\.float16 can't hold: save it with an"):
        save_weights(path, model, card={}, dtype=torch.float16)
    nn.init.constant_(model.bias, torch.nan)
    for dtype in (torch.float16, None):
        with pytest.raises(ValueError, match="bias has numbers that are not finite"):
            save_weights(path, model, card={}, dtype=dtype)
    for dtype in (torch.int8, torch.complex64):
        with pytest.raises(ValueError, match=r"expected a dtype of .*, or None for the weights' own, got"):
            save_weights(path, model, card={}, dtype=dtype)
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["", "[1]", "{", None])
def test_a_card_that_is_none(tmp_path: Path, text: str | None) -> None:
    message = r"there is no card .*x\.json"
    if text is not None:
        (tmp_path / "x.json").write_text(text)
        message = r"x\.json is not a card: expected (JSON|a JSON object, got list)"
    with pytest.raises(ValueError, match=message):
        read_card(tmp_path / "x.safetensors")


def test_new_weights_never_stand_beside_an_old_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, card = tmp_path / "x.safetensors", tmp_path / "card"
    (tmp_path / "x.json").symlink_to(card)
    save_weights(path, nn.Linear(2, 2), card={"seed": 0})
    before = card.read_bytes()
    broken = nn.Linear(2, 2)
    nn.init.constant_(broken.bias, torch.nan)
    with pytest.raises(ValueError, match="not finite"):
        save_weights(path, broken, card={"seed": 1})
    assert card.read_bytes() == before
    monkeypatch.setattr(os, "replace", lambda *names: pytest.fail("cut"))
    with pytest.raises(pytest.fail.Exception, match="cut"):
        save_weights(path, nn.Linear(2, 2), card={"seed": 1})
    with pytest.raises(ValueError, match="there is no card"):
        read_card(path)
    monkeypatch.undo()
    save_weights(path, nn.Linear(2, 2), card={"seed": 1})
    assert (read_card(path), (tmp_path / "x.json").is_symlink()) == ({"seed": 1}, True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"x\.json is not a list of plays: expected JSON \("),
        (b"\xff\xfe", r"x\.json is not a list of plays: expected JSON \('utf-8' codec"),
        (b"[" * 100_000, r"x\.json is not a list of plays: expected JSON \(maximum recursion depth"),
        (b"1" * 5000, r"x\.json is not a list of plays: expected JSON \("),
        (b"{}", r"x\.json is not a list of plays: expected a JSON list, got dict"),
    ],
)
def test_a_strangers_json(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_json(tmp_path / "x.json", what="a list of plays", kind=list)


def test_json_is_written_as_json_writes_it_with_a_line_break(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"è": [1]})
    assert (tmp_path / "x.json").read_bytes() == b'{"\\u00e8": [1]}\n'
    write_json(tmp_path / "x.json", {"è": 1}, indent=2, ensure_ascii=False)
    assert (tmp_path / "x.json").read_bytes() == '{\n  "è": 1\n}\n'.encode()


def test_json_that_begins_with_a_mark_of_byte_order(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(tmp_path / "x.json", what="a card") == {"a": 1}


def test_a_wrong_byte_is_counted_behind_a_mark_of_byte_order() -> None:
    message = "^a.txt, line 2: expected text in UTF-8, got the byte 0xff: save the text as UTF-8$"
    for mark in (b"", b"\xef\xbb\xbf"):
        with pytest.raises(ValueError, match=message):
            decode_text(mark + b"a\n\xffbc", name="a.txt")


def test_what_may_not_be_read_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.safetensors"
    save_weights(path, nn.Linear(2, 2), card={})

    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)  # and not by its mode, as a test may run as root
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ValueError, match=r"x\.safetensors can't be read: Permission denied"):
        read_tensors(path)
    with pytest.raises(ValueError, match=r"x\.json can't be read as a card: Permission denied"):
        read_card(path)


def test_only_parts_are_swept(tmp_path: Path) -> None:
    kept = [
        "model.safetensors",
        "notes.part",
        "train.de.gz.part",
        f"{7:016x}.part",
        f"exformer-{7:016x}.part.x",
    ]
    kept += [f"exformer-{7:015x}.part", f"exformer-{7:017x}.part", f"exformer-{'A' * 16}.part"]
    for name in (*kept, f"exformer-{7:016x}.part"):
        (tmp_path / name).touch()
    remove_partial_files(tmp_path)
    remove_partial_files(tmp_path / "nowhere")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


def test_a_killed_process_leaves_a_part_that_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as cut:
        cut.setattr(os, "replace", lambda *names: pytest.fail("killed"))
        cut.setattr(Path, "unlink", lambda *args, **options: None)
        with pytest.raises(pytest.fail.Exception, match="killed"):
            replace_file(tmp_path / "x", b"text")
    assert [path.suffix for path in tmp_path.iterdir()] == [".part"]
    remove_partial_files(tmp_path)
    assert not list(tmp_path.iterdir())


def test_of_a_stream_itself_is_asked_and_of_a_file_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) in (Path(os.devnull), tmp_path))
    check_writable(os.devnull, what="the scores")
    check_writable(tmp_path / "scores.json", what="the scores")
    with pytest.raises(ValueError, match=r"x may not be written: choose another path for the scores"):
        check_writable(Path(tmp_path.root) / "x", what="the scores")


def test_a_place_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder: expected a file for the scores"):
        check_writable(tmp_path, what="the scores")
    with pytest.raises(ValueError, match="the name of the file is a folder: expected a file for the scores"):
        check_writable("", what="the scores")
    with pytest.raises(ValueError, match=r"there is no folder for .*x: make it"):
        check_writable(tmp_path / "nowhere" / "x", what="the scores")
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"there is no folder for .*x: make it"):
        check_writable(tmp_path / "file" / "x", what="the scores")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere" / "x")
    with pytest.raises(ValueError, match=r"there is no folder for .*link: make it"):
        check_writable(link, what="the scores")
    (tmp_path / "nowhere").mkdir()
    check_writable(link, what="the scores")


def test_lines_that_are_no_objects_are_left_out(tmp_path: Path) -> None:
    lines = ['{"a": 1}', "", "[1]", "3", "[" * 100_000, '{"a": "x\u2028y"}\r', '{"a": 2', '{"a": 3}', '{"b":']
    (tmp_path / "log").write_bytes("\n".join(lines).encode())
    assert read_json_lines(tmp_path / "log", what="a log") == [{"a": 1}, {"a": "x\u2028y"}, {"a": 3}]
    with pytest.raises(ValueError, match="can't be read as a log"):
        read_json_lines(tmp_path / "none", what="a log")


@pytest.mark.parametrize("number", [torch.nan, torch.inf])
def test_one_number_that_is_none_is_too_many(tmp_path: Path, number: float) -> None:
    model, path = nn.Linear(3, 2), tmp_path / "x.safetensors"
    tensors = {name: value.clone() for name, value in model.state_dict().items()}
    tensors["weight"][0, 1] = number
    with pytest.raises(ValueError, match=r"holds weights that are NaN or infinite: weight$"):
        check_weights(tensors, model, path=path)
    model.load_state_dict(tensors)
    with pytest.raises(ValueError, match="weight has numbers that are not finite"):
        pack_weights(model, card={})
    with torch.no_grad():
        model.weight[0, 1] = 1e6
    with pytest.raises(ValueError, match=r"weight has numbers that torch\.float16 can't hold"):
        pack_weights(model, card={}, dtype=torch.float16)


def test_weights_of_another_model_or_type_are_refused(tmp_path: Path) -> None:
    model, path = nn.Linear(3, 2), tmp_path / "x.safetensors"
    right = dict(model.state_dict())
    four = {f"{letter}{number}": right["bias"] for number, letter in enumerate("dcba")}
    for tensors, message in (
        ({"weight": right["weight"]}, r"1 weights missing \(bias\), 0 unknown \(none\)"),
        (right | dict(list(four.items())[:3]), r"0 weights missing \(none\), 3 unknown \(b2, c1, d0\);"),
        (right | four, r"4 unknown \(a3, b2, c1, …\)"),
        (right | {"weight": right["weight"].T}, r"weight is float32 \(3, 2\), expected float32 \(2, 3\)"),
        (right | {"bias": right["bias"].long()}, r"bias is int64 \(2,\), expected float32 \(2,\)"),
        (
            right | {"bias": right["bias"].to(torch.float8_e5m2)},
            "a type that models can't compute with: bias$",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            check_weights(tensors, model, path=path)
    check_weights(right | {"bias": right["bias"].double()}, model, path=path)


def test_weights_keep_type_and_order_however_they_lie_in_memory(tmp_path: Path) -> None:
    model, path = nn.Linear(3, 2, bias=False), tmp_path / "x.safetensors"
    model.weight = nn.Parameter(torch.arange(6.0, dtype=torch.float64).view(3, 2).T)
    model.register_buffer("mask", torch.tensor([True, False]))
    for dtype in (None, torch.bfloat16):
        save_weights(path, model, card={}, dtype=dtype)
        tensors, notes = read_tensors(path)
        assert (notes, tensors["weight"].dtype) == ({}, dtype or torch.float64)
        assert tensors["weight"].tolist() == [[0, 2, 4], [1, 3, 5]]
        assert (tensors["mask"].dtype, tensors["mask"].tolist()) == (torch.bool, [True, False])
    assert model.weight.dtype == torch.float64


def test_a_card_that_json_cannot_hold_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    for card in ({"seed": {1}}, loop):
        with pytest.raises(ValueError, match="expected a card of what JSON can hold"):
            pack_weights(nn.Linear(1, 1), card=card)


def test_without_new_weights_there_is_no_new_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, replace = tmp_path / "x.safetensors", os.replace

    def cut(part: Path, final: Path) -> None:
        if final.suffix == ".safetensors":
            pytest.fail("cut")
        replace(part, final)

    monkeypatch.setattr(os, "replace", cut)
    with pytest.raises(pytest.fail.Exception, match="cut"):
        save_weights(path, nn.Linear(2, 2), card={})
    assert not list(tmp_path.iterdir())


def test_files_need_no_torch() -> None:
    script = "import sys, exformer.storage.files; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "False\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("embedding.table", "embedding.weight"),
        ("src_embedding.table", "src_embedding.weight"),
        ("tgt_positions.table", "tgt_positions.weight"),
        ("segments.table", "segments.weight"),
        ("norm.gain", "norm.weight"),
        ("encoder_norm.gain", "encoder_norm.weight"),
        ("layers.3.norm_feed_forward.gain", "layers.3.norm_feed_forward.weight"),
        ("layers.0.self_attention.positions.norm_q.gain", "layers.0.self_attention.norm_q.weight"),
        ("lookup.table", "lookup.table"),  # a module of somebody else's
        ("layers.0.gain", "layers.0.gain"),
        ("embedding.table.weight", "embedding.table.weight"),
    ],
)
def test_old_weight_names(old: str, new: str) -> None:
    assert upgrade_weights({old: 1, "bias": 2}) == {new: 1, "bias": 2}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "expected the name of a folder for the model, got an empty one"),
        ("file", "file is a file, or lies in one: expected a folder for the model"),
        ("file/x", "file/x is a file, or lies in one: expected a folder for the model"),
        ("nowhere", "nowhere is a link that leads nowhere: expected a folder for the model"),
        ("loop", "loop is a link that leads nowhere: expected a folder for the model"),
        ("/dev/null", "/dev/null is a file, or lies in one: expected a folder for the model"),
    ],
)
def test_names_that_are_no_folder(tmp_path, monkeypatch, name, says):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("nowhere").symlink_to("gone")
    Path("loop").symlink_to("loop")
    with pytest.raises(ValueError, match=f"^{says}$"):
        make_folder(name, what="the model")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "loop", "nowhere"]
    assert make_folder(tmp_path / "a" / "b", what="the model").is_dir()
    assert make_folder(Path(), what="the model") == Path()
