"""The Trainer: the loop of `train`, however a run is cut, split or measured, for three kinds of models."""

import json
import math
import sys
from collections import namedtuple
from dataclasses import asdict, replace
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from recipe_run import run_code
from test_training import OnDevice
from torch import nn
from torch.utils.data import DataLoader, Dataset

from exformer.corpora.english_italian import split
from exformer.data.masking import MaskingConfig, mask_tokens
from exformer.data.sampler import MicroBatch
from exformer.data.translation import translation_batches
from exformer.data.windows import TextWindows
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.models.encoder_lm import EncoderLM, EncoderLMConfig
from exformer.tokenizers.characters_and_words import WordTokenizer
from exformer.training.checkpoint import find_checkpoints, load_checkpoint
from exformer.training.config import TrainingConfig
from exformer.training.distributed import Processes
from exformer.training.gradient_accumulation import accumulate_gradients
from exformer.training.loop import set_seed, train
from exformer.training.optimizers import adamw
from exformer.training.to_device import to_device
from exformer.training.trainer import Trainer

SIZES = {"d_model": 8, "n_heads": 2, "d_ff": 12, "n_layers": 1, "max_len": 7}
IDS = torch.arange(210) * torch.arange(210) % 10 + 1
WINDOWS = TextWindows(IDS[:170], width=7, batch_size=5, seed=3)
VALIDATION = [WINDOWS.batch(torch.arange(0, 30, 7).numpy())]
CONFIG = TrainingConfig(steps=10, lr=0.02, warmup=2, eval_interval=3, average_last=2)


def model_of(dropout: float = 0.1) -> DecoderLM:
    set_seed(1)
    return DecoderLM(DecoderLMConfig(11, dropout=dropout, **SIZES))


def trainer_of(folder: Path | None = None, config: TrainingConfig = CONFIG, **options: object) -> Trainer:
    return Trainer(model_of(), WINDOWS, config=config, validation=VALIDATION, folder=folder, **options)


def first_batches(n: int) -> list[torch.Tensor]:
    return [WINDOWS.batch(rows) for rows in islice(WINDOWS.steps(), n)]


def assert_same_weights(found: nn.Module, wanted: nn.Module) -> None:
    assert all(torch.equal(found.state_dict()[name], value) for name, value in wanted.state_dict().items())


def test_a_language_model_with_defaults() -> None:
    losses = Trainer(model_of(), first_batches(60)).fit()
    assert len(losses) == 60
    assert sum(losses[-9:]) / 9 < losses[0] - 0.1


def test_a_translator_with_defaults() -> None:
    pairs = split(80, n_test=10, seed=0).train
    source, target = (
        WordTokenizer.from_texts([getattr(p, side) for p in pairs]) for side in ("source", "target")
    )
    both = {"src_tokenizer": source, "tgt_tokenizer": target}
    batches = translation_batches(pairs, **both, batch_size=8, seed=0, steps=50)
    sizes = SIZES | {"max_len": 32}
    set_seed(3)
    model = EncoderDecoder(EncoderDecoderConfig(source.vocab_size, target.vocab_size, **sizes))
    trainer = Trainer(model, batches, validation=list(batches)[:2])
    losses = trainer.fit()
    assert sum(losses[-9:]) / 9 < losses[0] - 0.3
    assert trainer.history[-1]["validation_loss"] == pytest.approx(trainer.validation_loss())


def test_a_masked_language_model_with_defaults() -> None:
    masking = MaskingConfig(vocab_size=12, mask_id=11)
    chance = torch.Generator().manual_seed(0)
    texts = torch.arange(3, 10).repeat(6, 1)
    batches = [mask_tokens(texts, config=masking, generator=chance) for _ in range(60)]
    set_seed(3)
    losses = Trainer(EncoderLM(EncoderLMConfig(12, **SIZES)), batches).fit()
    assert sum(losses[-9:]) / 9 < losses[0] - 0.1


def test_a_model_of_another_kind_needs_a_loss() -> None:
    with pytest.raises(ValueError, match=r"Linear has no method loss\(batch\): write one, or give a loss_fn"):
        Trainer(nn.Linear(2, 2), [])
    trainer = Trainer(
        nn.Linear(2, 2),
        [torch.ones(3, 2)],
        config=TrainingConfig(steps=3, warmup=1),
        loss_fn=lambda model, x: model(x).sum(),
    )
    assert len(trainer.fit()) == 3  # the batch again and again


class Tied(nn.Module):
    """A language model whose output is the embedding, tied as in nanoGPT."""

    def __init__(self) -> None:
        super().__init__()
        self.wte, self.lm_head = nn.Embedding(11, 4), nn.Linear(4, 11, bias=False)
        self.wte.weight = self.lm_head.weight

    def loss(self, ids: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(self.lm_head(self.wte(ids[:, :-1])).mT, ids[:, 1:])


def test_a_tied_model_of_ones_own_is_resumed(tmp_path: Path) -> None:
    def trained(steps: int, folder: Path, *, resume: bool = False) -> nn.Module:
        set_seed(1)
        model = Tied()
        Trainer(model, WINDOWS, config=replace(CONFIG, steps=steps), folder=folder).fit(resume=resume)
        assert model.wte.weight is model.lm_head.weight
        return model

    trained(5, tmp_path / "cut")
    again = trained(CONFIG.steps, tmp_path / "cut", resume=True)
    assert_same_weights(again, trained(CONFIG.steps, tmp_path / "whole"))


def test_all_that_holds_tensors_is_moved_to_the_device() -> None:
    part, x = namedtuple("Part", "x words")(torch.ones(2), ["a"]), torch.ones(2)
    found = to_device({"list": [x, 3], "tuple": (x, "a"), "part": part, "x": {"y": x}}, torch.device("meta"))
    tensors = [found["list"][0], found["tuple"][0], found["part"].x, found["x"]["y"]]
    assert {each.device.type for each in tensors} == {"meta"}
    assert (found["list"][1], found["tuple"][1], found["part"].words) == (3, "a", ["a"])
    assert [type(each) for each in found.values()] == [list, tuple, type(part), dict]


def test_it_is_the_loop_of_train() -> None:
    batches = first_batches(10)
    ours, theirs = model_of(dropout=0.0), model_of(dropout=0.0)
    losses = Trainer(ours, batches, config=replace(CONFIG, label_smoothing=0.1)).fit()
    wanted = train(
        theirs,
        batches,
        loss_fn=partial(DecoderLM.loss, label_smoothing=0.1),
        optimizer=adamw(theirs.parameters()),
        schedule=CONFIG.make_schedule(CONFIG.lr),
        clip_norm=1.0,
    )
    assert losses == wanted
    assert_same_weights(ours, theirs)


@pytest.mark.parametrize("whole", ["sampler", "list"])
def test_a_run_that_was_cut_goes_on_to_the_same_weights(tmp_path: Path, whole: str) -> None:
    batches = WINDOWS if whole == "sampler" else first_batches(4)
    uncut = Trainer(model_of(), batches, config=CONFIG, validation=VALIDATION)
    losses = uncut.fit()

    def stop(trainer: Trainer) -> None:
        if trainer.step in (3, 9):
            raise KeyboardInterrupt

    found = []
    for _ in range(3):
        trainer = Trainer(
            model_of(), batches, config=CONFIG, validation=VALIDATION, folder=tmp_path, on_measure=stop
        )
        try:
            found.append(trainer.fit(resume=True))
        except KeyboardInterrupt:
            continue
    assert found == [losses[9:]]
    assert_same_weights(trainer.model, uncut.model)
    plain = [{name: line[name] for name in ("step", "validation_loss")} for line in trainer.history]
    assert plain == [{name: line[name] for name in ("step", "validation_loss")} for line in uncut.history]
    assert [line["step"] for line in plain] == [3, 6, 9, 10]
    assert trainer.fit(resume=True) == []  # nothing is left to do


class Noisy(Dataset):
    """Windows of the text in which chance hides a token, as augmentation does."""

    def __len__(self) -> int:
        return 30

    def __getitem__(self, row: int) -> torch.Tensor:
        return IDS[7 * row : 7 * row + 7].index_fill(0, torch.randint(7, (1,)), 10)


def test_a_shuffled_loader_is_repeatable_and_can_be_resumed(tmp_path: Path) -> None:
    # Two passes and a half of four batches.
    def weights(seed: int, steps: int, *, config_seed: int = 0, folder: Path | None = None) -> torch.Tensor:
        model, batches = model_of(), DataLoader(Noisy(), batch_size=8, shuffle=True)
        set_seed(seed)
        config = replace(CONFIG, steps=steps, seed=config_seed)
        Trainer(model, batches, config=config, folder=folder).fit(resume=folder is not None)
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    whole = weights(100, 10)
    assert torch.equal(weights(101, 10), whole)
    for steps in (3, 6):
        weights(steps, steps, folder=tmp_path)
    assert torch.equal(weights(102, 10, folder=tmp_path), whole)
    assert not torch.equal(weights(100, 10, config_seed=1), whole)


def test_losses_of_a_device_are_read_where_they_are_needed(tmp_path: Path) -> None:
    config = replace(CONFIG, steps=50, eval_interval=40)
    logs, OnDevice.reads = [], 0
    for kind in (torch.Tensor, OnDevice):
        folder = tmp_path / kind.__name__
        trainer = trainer_of(
            folder,
            config,
            loss_fn=lambda model, ids, kind=kind: model.loss(ids).as_subclass(kind),
        )
        losses = trainer.fit()
        lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        assert [line["loss"] for line in lines] == losses
        assert [line["loss"] for line in trainer.history] == [losses[39], losses[49]]
        logs.append([{name: line[name] for name in line if "seconds" not in name} for line in lines])
    assert logs[0] == logs[1]
    assert OnDevice.reads == 4  # at 16 and 32, and where the model is saved: at 40 and 50


def test_a_folder_that_holds_a_run(tmp_path: Path) -> None:
    trainer_of(tmp_path).fit()
    with pytest.raises(ValueError, match="checkpoints holds a run: resume it, or choose another folder"):
        trainer_of(tmp_path).fit()
    with pytest.raises(ValueError, match="there are no checkpoints without a folder: give one"):
        trainer_of().fit(resume=True)


def test_a_checkpoint_that_the_end_needs_is_missed_at_once(tmp_path: Path) -> None:
    def stop(trainer: Trainer) -> None:
        if trainer.step == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer_of(tmp_path, on_measure=stop).fit()
    six, nine = find_checkpoints(tmp_path / "checkpoints")
    six.unlink()
    longer = replace(CONFIG, steps=11, average_last=3)  # the end is the mean of 6, 9 and 11
    with pytest.raises(ValueError, match=r"step_00000006\.safetensors is missing: .* the last 3 check"):
        trainer_of(tmp_path, longer).fit(resume=True)
    trainer_of(tmp_path).fit(resume=True)  # the end is the mean of 9 and 10: nobody misses 6
    nine.unlink()
    with pytest.raises(ValueError, match=r"step_00000009\.safetensors is missing: .* the last 2 check"):
        trainer_of(tmp_path).fit(resume=True)


def test_a_newest_checkpoint_that_was_cut_can_be_deleted(tmp_path: Path) -> None:
    whole = trainer_of(tmp_path)
    whole.fit()
    last = find_checkpoints(tmp_path / "checkpoints")[-1]
    last.write_bytes(last.read_bytes()[:1000])
    with pytest.raises(
        ValueError, match=r"00010\.safetensors is truncated or corrupt.*; delete this file, and "
    ):
        trainer_of(tmp_path).fit(resume=True)
    last.unlink()
    again = trainer_of(tmp_path)
    assert len(again.fit(resume=True)) == 1
    assert_same_weights(again.model, whole.model)


def test_patience(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, replace(CONFIG, lr=0.0, steps=30, patience=2))
    assert len(trainer.fit()) == 9  # nothing becomes better after the first measurement
    assert [path.stem[-2:] for path in trainer.last_checkpoints()] == ["06", "09"]
    assert trainer_of(tmp_path, trainer.config).fit(resume=True) == []


def test_each_process_has_its_own_rows_and_its_own_dropout() -> None:
    drawn, rows = [], []
    for process in (0, 1):
        trainer = trainer_of()
        trainer.processes = SimpleNamespace(index=process, count=2)
        steps = trainer._micro_batches()
        for _ in range(3):
            (part,) = next(steps)
            drawn.append(torch.rand(()).item())
            rows.append(part.batch)
    assert len(set(drawn)) == 6
    for own, other in zip(rows[:3], rows[3:], strict=True):
        assert (len(own), len(other)) == (3, 2)


def test_chance_depends_on_the_seed() -> None:
    first, same, other = (
        Trainer(model_of(), WINDOWS, config=replace(CONFIG, seed=seed)).fit() for seed in (0, 0, 1)
    )
    assert first == same
    assert first[1:] != other[1:]


def test_samples_are_shown_where_the_model_was_measured() -> None:
    seen = []
    trainer_of(on_measure=lambda trainer: seen.append((trainer.step, trainer.model.training))).fit()
    assert seen == [(3, True), (6, True), (9, True), (10, True)]


def test_validation_counts_shares_and_is_not_smoothed() -> None:
    model = model_of()
    one, two = (WINDOWS.batch(torch.tensor([n]).numpy()) for n in (0, 40))
    config = replace(CONFIG, label_smoothing=0.3)
    losses = [
        Trainer(model, WINDOWS, config=config, validation=[each]).validation_loss() for each in (one, two)
    ]
    assert losses[0] == model.eval().loss(one).item()
    plain = Trainer(model, WINDOWS, config=config, validation=[one, two]).validation_loss()
    assert plain == pytest.approx(sum(losses) / 2)
    shares = [MicroBatch(one, 0.25), MicroBatch(two, 0.75)]
    found = Trainer(model, WINDOWS, config=config, validation=shares).validation_loss()
    assert found == pytest.approx(0.25 * losses[0] + 0.75 * losses[1])


def test_parts_are_one_batch() -> None:
    # A quarter of the gradients (4, 8) and three quarters of (8, 0) are (7, 2); the losses 12 and 8 are 9.
    model = nn.Linear(2, 1, bias=False)
    nn.init.ones_(model.weight)
    parts = [MicroBatch(torch.tensor([4.0, 8.0]), 0.25), MicroBatch(torch.tensor([8.0, 0.0]), 0.75)]
    loss = accumulate_gradients(model, parts, lambda model, x: model(x).sum(), processes=Processes())
    assert loss == 9.0
    assert model.weight.grad.tolist() == [[7.0, 2.0]]


def test_half_precision_is_near() -> None:
    full, half = (
        Trainer(model_of(), WINDOWS, config=replace(CONFIG, precision=p)).fit() for p in ("no", "bf16")
    )
    assert half == pytest.approx(full, rel=0.02)
    assert half != full


def test_batches_that_end_too_early() -> None:
    batches = iter(first_batches(4))
    with pytest.raises(ValueError, match="the batches ended after step 4 of 10: give more"):
        Trainer(model_of(), batches, config=CONFIG).fit()


def test_plain_batches_cannot_be_split() -> None:
    batches = [WINDOWS.batch(torch.tensor([0]).numpy())]
    with pytest.raises(ValueError, match="batches that can be split: give a BatchSampler, as TextWindows"):
        Trainer(model_of(), batches, config=replace(CONFIG, accumulate=2)).fit()


def test_a_wild_run_is_not_saved(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, replace(CONFIG, lr=1e38, clip_norm=None, eval_interval=1))
    with pytest.raises(ValueError, match="lower the learning rate"):
        trainer.fit()
    for path in find_checkpoints(tmp_path / "checkpoints"):
        assert all(math.isfinite(line["validation_loss"]) for line in trainer.history), path


def test_a_wrapped_model(tmp_path: Path) -> None:
    """The wrapper trains; checkpoints and samples are those of the model inside."""
    plain, model = trainer_of(), model_of()
    calls = []
    wrapped = nn.DataParallel(model)
    wrapped.register_forward_pre_hook(lambda *given: calls.append(model.training))
    trainer = Trainer(wrapped, WINDOWS, config=CONFIG, validation=VALIDATION, folder=tmp_path)
    assert trainer.fit() == plain.fit()
    assert calls == [True] * CONFIG.steps
    assert trainer.model is model
    other = trainer_of(tmp_path)  # the plain model goes on with the same checkpoint
    assert other.fit(resume=True) == []
    assert_same_weights(other.model, plain.model)


def test_a_compiled_model(tmp_path: Path) -> None:
    code = """
import sys
import torch
torch.manual_seed(0)
from exformer import CharTokenizer, DecoderLM, DecoderLMConfig, load_model, save_model
from exformer import TextWindows, Trainer, TrainingConfig
model = DecoderLM(DecoderLMConfig(7, d_model=8, n_heads=2, n_layers=1, max_len=6))
windows = TextWindows(torch.arange(70) % 6 + 1, width=6, batch_size=4, seed=0)
compiled = torch.compile(model, backend="eager")
trainer = Trainer(compiled, windows, config=TrainingConfig(steps=20, lr=0.02, warmup=2))
losses = trainer.fit()
save_model(sys.argv[1], compiled, CharTokenizer.from_texts(["abcd"]), card={})  # and 3 specials
found = load_model(sys.argv[1]).model.state_dict()
same = all(torch.equal(found[name], value) for name, value in model.state_dict().items())
print(len(losses), losses[-1] < losses[0], same, trainer.model is model)
"""
    assert run_code(code, str(tmp_path)) == "20 True True True\n"


def test_several_processes_without_accelerate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(ValueError, match=r"they need Accelerate: pip install 'exformer\[processes\]'"):
        Processes()


def test_one_process_needs_no_accelerate() -> None:
    code = """
import sys
sys.modules["accelerate"] = None
import torch
from exformer.data.windows import TextWindows
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.training.trainer import Trainer
model = DecoderLM(DecoderLMConfig(7, d_model=8, n_heads=2, n_layers=1, max_len=6))
windows = TextWindows(torch.arange(70) % 6 + 1, width=6, batch_size=4, seed=0)
print(len(Trainer(model, [windows.batch(rows) for _, rows in zip(range(5), windows.steps())]).fit()))
"""
    assert run_code(code) == "5\n"


def test_patience_waits_for_the_best_not_for_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = iter([3.0, 2.0, 2.5, 2.4, 1.0])
    monkeypatch.setattr(Trainer, "validation_loss", lambda self: next(losses))
    assert len(trainer_of(config=replace(CONFIG, steps=15, patience=2)).fit()) == 4 * CONFIG.eval_interval


@pytest.mark.parametrize(
    ("n_batches", "steps", "warmup"),
    [(0, 1, 1), (9, 9, 1), (25, 25, 2), (1000, 1000, 100), (1200, 1200, 100)],
)
def test_without_settings_there_is_one_pass(n_batches: int, steps: int, warmup: int) -> None:
    config = Trainer(model_of(), [IDS[None, :7]] * n_batches).config
    assert (config.steps, config.warmup) == (steps, warmup)
    config = Trainer(model_of(), iter(())).config
    assert (config.steps, config.warmup) == (1000, 100)


def test_without_validation_nothing_is_in_the_history(tmp_path: Path) -> None:
    seen = []
    trainer = Trainer(
        model_of(), WINDOWS, config=CONFIG, folder=tmp_path, on_measure=lambda one: seen.append(one.step)
    )
    trainer.fit()
    assert trainer.history == []
    assert seen == [3, 6, 9, 10]
    assert len(find_checkpoints(tmp_path / "checkpoints")) == CONFIG.average_last


def test_what_needs_validation_batches_says_so_without_them() -> None:
    with pytest.raises(ValueError, match="no validation batches to measure on: give some to the Trainer"):
        Trainer(model_of(), WINDOWS, config=CONFIG).validation_loss()
    with pytest.raises(ValueError, match="a patience of 2 validations needs validation batches, got none"):
        Trainer(model_of(), WINDOWS, config=replace(CONFIG, patience=2))


def test_validation_batches_that_can_be_read_once_are_kept() -> None:
    trainer = Trainer(model_of(), WINDOWS, config=CONFIG, validation=iter(VALIDATION))
    trainer.fit()
    assert len(trainer.history) == 4
    assert len({line["validation_loss"] for line in trainer.history}) == 4


def test_an_infinite_validation_loss_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trainer, "validation_loss", lambda self: math.inf)
    with pytest.raises(ValueError, match="the validation loss is inf after step 3: lower the learning rate"):
        trainer_of().fit()


def test_weights_that_are_no_numbers_are_not_saved(tmp_path: Path) -> None:
    trainer = Trainer(model_of(), WINDOWS, config=CONFIG, folder=tmp_path)

    def spoil() -> None:
        if trainer.step == 2:  # this is the third; the loss before it was a number
            nn.init.constant_(trainer.model.embedding.weight, math.nan)

    trainer.optimizers[0][0].step = spoil
    with pytest.raises(ValueError, match="a parameter is NaN or infinite after step 3"):
        trainer.fit()
    assert find_checkpoints(tmp_path / "checkpoints") == []


def test_a_run_that_goes_on_has_its_history_and_its_time(tmp_path: Path) -> None:
    def stop(trainer: Trainer) -> None:
        if trainer.step == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer_of(tmp_path, on_measure=stop).fit()
    path = find_checkpoints(tmp_path / "checkpoints")[-1]
    other = trainer_of()
    _, notes = load_checkpoint(path, model=other.model, optimizers=[each for each, _ in other.optimizers])
    assert notes["wall_seconds"] > 0
    trainer = trainer_of(tmp_path)
    trainer.fit(resume=True)
    assert [line["step"] for line in trainer.history] == [3, 6, 9, 10]
    trainer.fit(resume=True)
    assert [line["step"] for line in trainer.history] == [3, 6, 9, 10]
    seconds = [line["wall_seconds"] for line in trainer.history]
    assert seconds == sorted(seconds)
    assert seconds[2] >= notes["wall_seconds"]


def test_settings_of_a_run_unless_told_otherwise() -> None:
    numbers = {"steps": 1000, "accumulate": 1, "warmup": 100, "eval_interval": 100, "average_last": 1}
    rates = {"lr": 1e-3, "lr_by_module": {}, "muon_lr": 0.02, "momentum": 0.95, "betas": (0.9, 0.98)}
    choices = {"optimizer": "adamw", "schedule": "inverse_sqrt", "precision": "no", "seed": 0, "patience": 0}
    against_overfitting = {"weight_decay": 0.0, "clip_norm": 1.0, "label_smoothing": 0.0}
    wanted = numbers | rates | choices | against_overfitting
    assert wanted.items() <= asdict(TrainingConfig()).items()
