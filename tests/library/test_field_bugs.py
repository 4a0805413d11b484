"""What went wrong in other people's programs, each case named after its symptom: see book/bugs.yml."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close
from transformers import GPT2LMHeadModel

from exformer import BPETokenizer, WordTokenizer, corpus_bleu, from_hugging_face, to_hugging_face, train
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.nn.loss import cross_entropy, nll
from exformer.training.config import TrainingConfig
from exformer.training.loop import set_seed
from exformer.training.schedules import cosine_schedule, inverse_sqrt_schedule, linear_schedule
from exformer.training.trainer import Trainer

SHORT, LONG = [3, 7, 5], [3, 4, 9, 2, 8, 6, 1, 9, 4]


def model_of(dropout: float = 0.0) -> DecoderLM:
    set_seed(2)
    sizes = {"d_model": 12, "n_heads": 2, "d_ff": 20, "n_layers": 2, "max_len": 13}
    return DecoderLM(DecoderLMConfig(11, dropout=dropout, **sizes))


def padded(width: int) -> torch.Tensor:
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in (SHORT, LONG)])


def gradient(model: DecoderLM) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters()])


@pytest.mark.usefixtures("float64")
def test_a_short_window_counts_as_much_as_a_long_one() -> None:
    """transformers#34191, nanochat#59: windows of 2 and 8 tokens, each with its own mean."""
    whole, parts = model_of(), model_of()
    whole.loss(padded(9)).backward()
    for row in (SHORT, LONG):
        (parts.loss(torch.tensor([row])) * (len(row) - 1) / 10).backward()
    assert_close(gradient(parts), gradient(whole), rtol=0.0, atol=1e-10)
    means = model_of()
    for row in (SHORT, LONG):
        (means.loss(torch.tensor([row])) / 2).backward()
    assert (gradient(means) - gradient(whole)).norm() > 0.1 * gradient(whole).norm()


@pytest.mark.usefixtures("float64")
def test_more_padding_lowers_the_loss() -> None:
    """The mean over positions: pytorch#73205 for smoothed targets."""
    model = model_of()
    for smoothing in (0.0, 0.2):
        losses = [model.loss(padded(width), label_smoothing=smoothing).item() for width in (9, 11, 14)]
        assert losses == pytest.approx(losses[:1] * 3, abs=1e-12)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("wrong", [0, 2])
def test_targets_are_shifted_twice_or_not_at_all(wrong: int) -> None:
    """transformers#47394, KempnerForge#155: data and loss both shift the targets, or neither."""
    model, ids = model_of(), torch.tensor([LONG])
    once = nll(model(ids[:, :-1]), ids[:, 1:]).mean()
    assert_close(model.loss(ids), once, rtol=0.0, atol=1e-12)
    n = ids.size(1) - wrong
    assert (nll(model(ids[:, :n]), ids[:, wrong:]).mean() - once).abs() > 0.01


def test_dropout_is_on_in_validation() -> None:
    """nanoGPT#240: two evaluations of one model give two numbers."""
    model, batches = model_of(dropout=0.5), [padded(9)] * 4
    trainer = Trainer(model, batches, config=TrainingConfig(steps=2, warmup=1), validation=batches[:1])
    model.train()
    losses = [trainer.validation_loss() for _ in range(2)]
    assert losses[0] == losses[1] == model.eval().loss(batches[0]).item()
    model.train()
    assert model.loss(batches[0]).item() != losses[0]
    trainer.validation_loss()
    assert model.training  # the training goes on with dropout


def test_ignored_targets_alone_give_nan() -> None:
    """pytorch#116349, nanochat#619: the mean over no tokens poisons the optimizer."""
    logits, nothing = torch.zeros(1, 3, 11, requires_grad=True), torch.full((1, 3), -100)
    with pytest.raises(ValueError, match="no target counts"):
        cross_entropy(logits, nothing)


@pytest.mark.parametrize("schedule", [linear_schedule, cosine_schedule, inverse_sqrt_schedule])
def test_the_first_or_the_last_step_has_rate_zero(schedule) -> None:
    """nanoGPT#443: a warm-up that counts from 0 wastes a step."""
    total = {} if schedule is inverse_sqrt_schedule else {"total": 10}
    assert min(schedule(step, peak=1.0, warmup=4, **total) for step in range(1, 11)) > 0.05


def test_three_letters_become_one_pair() -> None:
    """karpathy/minbpe#38: a merge of whole arrays replaces pairs that overlap."""
    tokenizer = BPETokenizer.from_texts(["aaaa aaaa"], n_merges=1)
    assert [tokenizer.tokens[token] for token in tokenizer.encode("aaaaa")] == [b"aa", b"aa", b"a"]


def test_each_process_learns_another_vocabulary() -> None:
    """subword-nmt#13, tokenizers#1794, minbpe#90: the order of a hash table, or of the text, breaks ties."""
    learn = "BPETokenizer.from_texts({}, n_merges=4, min_count=1).merges"
    code = f"from exformer import BPETokenizer\nprint({learn})"
    texts = [["bbbaaaddddcccc", "zy xz zx"], ["aaabbbccccdddd", "zx zy xz"]]
    found = {
        subprocess.run(
            [sys.executable, "-c", code.format(text)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for text in texts
        for seed in "012"
    }
    assert len(found) == 1


@pytest.mark.parametrize("mark", [",", ".", "!", "\n", "'s", "123"])
def test_a_comma_changes_the_word_before_it(mark: str) -> None:
    """rasbt/LLMs-from-scratch#558: what follows a word changed the order of its merges."""
    tokenizer = BPETokenizer.from_texts(["Hello, hello! the king's men. 123\n"] * 3, n_merges=60)
    for word in ("Hello", " king", "men", "unseen"):
        ids = tokenizer.encode(word)
        assert tokenizer.encode(word + mark)[: len(ids)] == ids


def test_the_model_never_learns_to_stop() -> None:
    """mlabonne/llm-course#33: where the end token is the padding too, the loss leaves the end out."""
    begin, end, stops = 1, 2, []
    texts = torch.tensor([[begin, 3, 4, end, 0, 0], [begin, 5, 3, 6, 4, end]])
    for pad_id, batch in ((0, texts), (end, texts.masked_fill(texts == 0, end))):
        set_seed(0)
        model = DecoderLM(DecoderLMConfig(7, d_model=16, n_heads=2, n_layers=1, max_len=12, pad_id=pad_id))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
        train(model, [batch] * 60, loss_fn=lambda model, batch: model.loss(batch), optimizer=optimizer)
        logits = model.eval()(torch.tensor([[begin, 3, 4], [begin, 5, 3]]))[0, -1]
        stops.append(logits.argmax().item() == end)
    assert stops == [True, False]


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("left", ["lm_head.weight", "transformer.wte.weight"])
def test_a_tied_head_is_drawn_anew(tmp_path: Path, left: str) -> None:
    """transformers#30202, #38870: of one matrix under two names a file may hold either, or both."""
    sizes = {"d_model": 12, "n_heads": 2, "n_layers": 1, "max_len": 13}
    model = DecoderLM(DecoderLMConfig(11, scale_embedding=False, **sizes))
    ids = torch.tensor([LONG])
    to_hugging_face(tmp_path, model)
    theirs = GPT2LMHeadModel.from_pretrained(tmp_path, dtype=torch.float64)
    assert_close(theirs(ids).logits, model.eval()(ids), rtol=0.0, atol=1e-10)
    path = tmp_path / "model.safetensors"
    state = {**load_file(path), **theirs.state_dict()}
    assert torch.equal(state["lm_head.weight"], state["transformer.wte.weight"])
    kept = {name: tensor.clone() for name, tensor in state.items() if name != left}
    save_file(kept, path, metadata={"format": "pt"})
    assert_close(from_hugging_face(tmp_path).model.eval()(ids), model(ids), rtol=0.0, atol=1e-10)


@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-4), (torch.float64, 1e-11)])
def test_a_cache_changes_the_greedy_text(dtype: torch.dtype, most: float) -> None:
    """transformers#36536: sums in another order; texts may part only where two tokens nearly tie."""
    model = model_of().to(dtype).eval()
    ids, cache = torch.tensor([LONG + SHORT]), model.new_cache()
    steps = torch.cat([model(token, cache=cache) for token in ids.split(1, dim=1)], dim=1)
    whole = model(ids)
    assert (steps - whole).abs().max() < most
    best = whole.topk(2, dim=-1).values
    clear = best[..., 0] - best[..., 1] > 2 * most
    assert clear.any()
    assert torch.equal(steps.argmax(-1)[clear], whole.argmax(-1)[clear])


def test_a_file_is_read_in_the_encoding_of_the_system(tmp_path: Path) -> None:
    """openai/gpt-2#28: the merges of GPT-2 could not be read on Windows."""
    code = """
import locale, sys
from exformer.tokenizers.loading import load_tokenizer
assert locale.getpreferredencoding(False).lower() not in ("utf-8", "utf8")
print(ascii(load_tokenizer(sys.argv[1]).decode([3])))
"""
    path = tmp_path / "words.json"
    WordTokenizer.from_texts(["l\xe0"]).save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")  # as other programs write
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    program = [sys.executable, "-c", code, str(path)]
    found = subprocess.run(program, env=os.environ | plain, check=True, capture_output=True, text=True)
    assert found.stdout.strip() == ascii("l\xe0")


def test_nothing_right_has_a_score_above_zero() -> None:
    """browsermt/students#10: BLEU 1.0 for an empty text; mjpost/sacrebleu#141: 50 for one wrong word."""
    assert corpus_bleu([""], ["this is what you want"]) == 0.0
    assert corpus_bleu(["yes"], ["no"]) == 0.0
    assert corpus_bleu(["", "a b c d"], ["e f g h", "a b c d"]) < 100.0
