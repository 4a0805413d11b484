"""The bank of planted bugs: what is changed in the library, and the test that must turn red.

Most of them are classics: mistakes that students, first versions of papers and well-known code have made.
The right text occurs once in its function and is sought there only, so that an edit elsewhere makes no row
stale. To add one, add a row. ``make test`` plants them all.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """Hold one planted bug.

    Args:
        where: The function, under exformer: ``nn.layers.EncoderLayer.forward``.
        name: What is wrong.
        right: Text of the function.
        wrong: What stands in its place.
        test: The test that must find it: file::function, under tests.
    """

    where: str
    name: str
    right: str
    wrong: str
    test: str


BUGS = [
    Bug(
        "storage.state_dict.replaced_weights",
        "new weights stand beside an old card",
        "        card_path.resolve().unlink(missing_ok=True)  # a link stays a link\n",
        "",
        "test_storage.py::test_new_weights_never_stand_beside_an_old_card",
    ),
    Bug(
        "storage.files.staged_file",
        "half a file is left behind",
        "part.unlink(missing_ok=True)",
        "pass",
        "test_checkpoint.py::test_a_full_disk_leaves_what_was_there",
    ),
    Bug(
        "corpora.algorithmic.recall",
        "distance counted from the start",
        "asked = n_pairs - 1 - back",
        "asked = back",
        "test_corpora_algorithmic.py::test_recall_asks_at_the_distance_wanted",
    ),
    Bug(
        "corpora.real.download._fetch_whole",
        "what comes is not checked",
        "    if _hash(part) != file.sha256:\n",
        "    if False:\n",
        "test_corpora_real.py::test_other_bytes_are_refused_and_not_kept",
    ),
    Bug(
        "corpora.real.download.fetch",
        "the cache is believed",
        "path.is_file() and _hash(path) == file.sha256",
        "path.is_file()",
        "test_corpora_real.py::test_a_poisoned_cache_is_fetched_anew",
    ),
    Bug(
        "corpora.news.checking._verdict",
        "any word of the article will do",
        'f" {words} " in article',
        "all(word in article for word in words.split())",
        "test_corpora_news.py::test_verdicts_by_hand",
    ),
    Bug(
        "corpora.news.sampling.sample",
        "test articles are training articles with other names",
        "Random(2 * seed + held_out)",
        "Random(seed)",
        "test_corpora_news.py::test_seeds_and_repeats",
    ),
    Bug(
        "corpora.english.labels._labelled",
        "the class of the last noun phrase",
        'if name == "NP" and not subject:',
        'if name == "NP":',
        "test_corpora_english_labels.py::test_the_kind_is_that_of_the_first_noun",
    ),
    Bug(
        "tokenizers.vocabulary.Vocabulary.from_tokens",
        "ids by order of appearance",
        "different = sorted(set(tokens))",
        "different = list(dict.fromkeys(tokens))",
        "test_tokenizer.py::test_ids_do_not_depend_on_the_order_of_the_texts",
    ),
    Bug(
        "tokenizers.pretokenize._pattern",
        "the last space left alone",
        "[{_SPACE}]+(?![^{_SPACE}])|[",
        "[",
        "test_bpe.py::test_pieces_by_hand",
    ),
    Bug(
        "tokenizers.bpe_merges._pop_most_frequent",
        "counts that have sunk are believed",
        "if now == -count:",
        "if now:",
        "test_bpe.py::test_merges_are_those_of_counting_all_pairs_anew",
    ),
    Bug(
        "tokenizers.bpe_merges._Corpus._recount",
        "two pairs in a row counted as one",
        "before, now = second, token",
        'before = now = ""',
        "test_bpe.py::test_runs_are_merged_from_the_left",
    ),
    Bug(
        "tokenizers.bpe_merges.apply_merges",
        "applied in the order of the text",
        "token, pair = heappop(waiting)",
        "token, pair = waiting.pop(0)",
        "test_bpe.py::test_a_word_is_merged_in_the_order_of_learning",
    ),
    Bug(
        "tokenizers.bpe.BPETokenizer.decode",
        "half characters end the decoding",
        '.decode("utf-8", "replace")',
        '.decode("utf-8")',
        "test_bpe.py::test_half_a_character_is_decoded_to_a_replacement",
    ),
    Bug(
        "tokenizers.bpe.BPETokenizer.encode",
        "half a surrogate pair taken for a byte",
        "return self._ids(_whole(text))",
        "return self._ids(text)",
        "test_bpe.py::test_half_a_character_is_refused_even_after_bytes_that_look_like_it",
    ),
    Bug(
        "data.masking._choose",
        "a short text gives no word",
        ".clamp(min=1)",
        "",
        "test_masked_lm.py::test_how_many_words_of_each_text",
    ),
    Bug(
        "data.masking._choose",
        "special symbols hidden",
        "return may & (order",
        "return (order",
        "test_masked_lm.py::test_a_text_without_words_gives_none",
    ),
    Bug(
        "data.masking.mask_tokens",
        "no word is kept as it is",
        "chance < config.masked + config.random)",
        "chance < 1.0)",
        "test_masked_lm.py::test_eighty_ten_ten",
    ),
    Bug(
        "data.masking.mask_tokens",
        "targets are what is shown",
        "MaskedBatch(inputs, ids.masked",
        "MaskedBatch(inputs, inputs.masked",
        "test_masked_lm.py::test_eighty_ten_ten",
    ),
    Bug(
        "data.translation.encode_pairs",
        "target not shifted",
        "[[*ids, tgt_tokenizer.eos_id] for ids in targets]",
        "[[tgt_tokenizer.bos_id, *ids] for ids in targets]",
        "test_batching.py::test_a_batch_by_hand",
    ),
    Bug(
        "data.translation.TranslationBatches._epoch",
        "last batch dropped",
        "range(0, len(rows), self.batch_size)",
        "range(0, len(rows) - self.batch_size + 1, self.batch_size)",
        "test_batching.py::test_one_epoch_has_every_pair_once",
    ),
    Bug(
        "data.sampler.TokenBatches.steps",
        "one batch left out too many",
        "yield from batches[done:]",
        "yield from batches[done + bool(done) :]",
        "test_token_batches.py::test_going_on_is_as_if_never_cut",
    ),
    Bug(
        "data.sampler.TokenBatches._cut",
        "the sentence that is too much stays",
        "(end + 1 - first) * width",
        "(end - first) * width",
        "test_token_batches.py::test_an_epoch_has_each_sentence_once_and_no_batch_too_much",
    ),
    Bug(
        "data.sampler.split_steps",
        "all processes read the same rows",
        "range(process * accumulate, (process + 1) * accumulate)",
        "range(accumulate)",
        "test_token_batches.py::test_parts_are_the_batch",
    ),
    Bug(
        "data.sampler.TokenBatches.epoch",
        "every epoch in the same order",
        "default_rng((self.seed, number))",
        "default_rng((self.seed, 0))",
        "test_token_batches.py::test_each_epoch_and_each_seed_has_an_order_of_its_own",
    ),
    Bug(
        "data.sampler.split_steps",
        "each process normalizes by its own tokens",
        "share = sampler.n_targets(own) / whole",
        "share = 1 / n_parts",
        "test_token_batches.py::test_parts_are_the_batch",
    ),
    Bug(
        "data.windows.TextWindows.steps",
        "the last window never begins",
        "- self.width, size",
        "- self.width - 1, size",
        "test_token_batches.py::test_windows_are_cut_anywhere",
    ),
    Bug(
        "data.padding.pad",
        "padding in front",
        "row[: len(sequence)] = sequence",
        "row[width - len(sequence) :] = sequence",
        "test_batching.py::test_pad_keeps_the_ids_and_fills_up_at_the_end",
    ),
    Bug(
        "nn.positions.absolute.sinusoidal_encoding",
        "base 1,000",
        "base: float = 10_000.0",
        "base: float = 1_000.0",
        "test_positional.py::test_the_papers_base_is_the_default",
    ),
    Bug(
        "training.schedules.root_schedule",
        "the root turned over",
        "sqrt(warmup / step)",
        "sqrt(step / warmup)",
        "test_recipes.py::test_root_schedule_by_hand",
    ),
    Bug(
        "training.schedules.cosine_schedule",
        "a whole wave",
        "math.cos(math.pi *",
        "math.cos(2 * math.pi *",
        "test_recipes.py::test_cosine_schedule_by_hand",
    ),
    Bug(
        "training.schedules.cosine_schedule",
        "down to nothing",
        "(floor + (1 - floor) * wave)",
        "wave",
        "test_recipes.py::test_cosine_schedule_by_hand",
    ),
    Bug(
        "training.optimizers.adamw",
        "gains and biases decay too",
        '"weight_decay": 0.0}',
        '"weight_decay": weight_decay}',
        "test_optimizers.py::test_one_step_of_adamw_by_hand",
    ),
    Bug(
        "training.optimizers.split_parameters",
        "Muon moves the tables too",
        "[part for part in model.children() if isinstance(part, nn.ModuleList)]",
        "model.children()",
        "test_optimizers.py::test_matrices_inside_the_layers",
    ),
    Bug(
        "training.muon.Muon._look_ahead",
        "the new slope is forgotten",
        "return slope.lerp(mean, momentum)",
        "return mean.clone()",
        "test_muon.py::test_two_steps_by_hand",
    ),
    Bug(
        "training.muon.Muon._move",
        "tall matrices go no farther than wide ones",
        "max(1.0, ahead.size(1) / ahead.size(2))",
        "max(1.0, ahead.size(2) / ahead.size(1))",
        "test_muon.py::test_two_steps_by_hand",
    ),
    Bug(
        "training.checkpoint._restore_chance",
        "PyTorch's random numbers are not put back",
        'torch.set_rng_state(tensors["random.torch"])',
        "pass",
        "test_checkpoint.py::test_a_run_goes_on_as_if_never_cut",
    ),
    Bug(
        "training.checkpoint.save_checkpoint",
        "the newest go",
        "[:-keep]",
        "[keep:]",
        "test_checkpoint.py::test_the_oldest_go",
    ),
    Bug(
        "training.checkpoint.average_weights",
        "the last checkpoint instead of the mean",
        ".mean(dim=0)",
        "[-1]",
        "test_checkpoint.py::test_the_mean_of_checkpoints",
    ),
    Bug(
        "training.loss.cross_entropy",
        "padding counts",
        "if pad_id is None else targets != pad_id",
        "",
        "test_loss.py::test_padding_by_hand",
    ),
    Bug(
        "training.loss.nll",
        "smoothing over |V| - 1",
        "label_smoothing * log_p.mean(dim=-1)",
        "label_smoothing * log_p.sum(dim=-1) / (log_p.size(-1) - 1)",
        "test_loss.py::test_the_fused_loss_is_the_mean_nll_of_real_targets",
    ),
    Bug(
        "training.loss.nll",
        "the target keeps its whole share",
        "(1 - label_smoothing) * of_targets",
        "of_targets",
        "test_loss.py::test_the_fused_loss_is_the_mean_nll_of_real_targets",
    ),
    Bug(
        "training.loss.log_probabilities",
        "the loss in half precision",
        "torch.float32 if half else None",
        "None",
        "test_loss.py::test_half_precision_loses_no_digit_of_the_loss",
    ),
    Bug(
        "training.fast_loss._MeanNLL.forward",
        "padding in the divisor",
        "nll[counts].mean()",
        "nll[counts].sum() / len(targets)",
        "test_loss.py::test_padding_by_hand",
    ),
    Bug(
        "training.fast_loss._MeanNLL.forward",
        "sum for mean",
        "nll[counts].mean()",
        "nll[counts].sum()",
        "test_loss.py::test_cross_entropy_by_hand",
    ),
    Bug(
        "training.fast_loss._MeanNLL.forward",
        "label smoothing on padding",
        "return nll[counts].mean()",
        "return nll[counts].mean() + 0.1 * (nll * ~counts).sum()",
        "test_loss.py::test_padding_by_hand",
    ),
    Bug(
        "training.fast_loss._MeanNLL.backward",
        "the gradient is divided by padding too",
        "counts / counts.sum()",
        "counts / len(counts)",
        "test_loss.py::test_parity_with_torch_and_with_the_mathematics_written_out",
    ),
    Bug(
        "training.fast_loss._MeanNLL.backward",
        "the gradient of the loss without smoothing",
        "difference -= ctx.label_smoothing / log_p.size(-1)",
        "pass",
        "test_loss.py::test_parity_with_torch_and_with_the_mathematics_written_out",
    ),
    Bug(
        "training.loop.training_steps",
        "the schedule is one step early",
        "schedule(step)",
        "schedule(step + 1)",
        "test_training.py::test_each_step_has_its_own_rate_and_a_gradient_of_its_own",
    ),
    Bug(
        "training.loop.training_steps",
        "the gradient is not zeroed",
        "optimizer.zero_grad(set_to_none=True)",
        "pass",
        "test_training.py::test_each_step_has_its_own_rate_and_a_gradient_of_its_own",
    ),
    Bug(
        "training.loop.training_steps",
        "the gradient is zeroed before the step",
        "loss = backward(model, batch, loss_fn)\n",
        "loss = backward(model, batch, loss_fn)\n        model.zero_grad()\n",
        "test_training.py::test_one_step_by_hand",
    ),
    Bug(
        "training.loop.training_steps",
        "clipped after the step",
        "        if clip_norm is not None:\n            nn",
        "        optimizers[0][0].step()\n        if clip_norm is not None:\n            nn",
        "test_training.py::test_clipping_by_hand",
    ),
    Bug(
        "training.loop.training_steps",
        "each number is clipped by itself",
        "nn.utils.clip_grad_norm_",
        "nn.utils.clip_grad_value_",
        "test_training.py::test_clipping_by_hand",
    ),
    Bug(
        "training.loop.training_steps",
        "left in evaluation mode",
        "    model.train()\n",
        "",
        "test_training.py::test_model_is_put_into_training_mode",
    ),
    Bug(
        "evaluation.metrics.perplexity",
        "perplexity of bits",
        "math.exp(mean_nats)",
        "2.0**mean_nats",
        "test_metrics.py::test_perplexity_of_a_uniform_choice_is_the_number_of_choices",
    ),
    Bug(
        "evaluation.metrics.corpus_bleu",
        "predictions and references swapped",
        "corpus_score(list(predictions), [list(references)]",
        "corpus_score(list(references), [list(predictions)]",
        "test_metrics.py::test_corpus_bleu_by_hand",
    ),
    Bug(
        "evaluation.metrics.rouge",
        "words by their stems",
        "RougeScorer(names)",
        "RougeScorer(names, use_stemmer=True)",
        "test_metrics.py::test_rouge_takes_the_words_as_they_are",
    ),
    Bug(
        "evaluation.metrics.rouge",
        "recall for F",
        "scores[name].fmeasure",
        "scores[name].recall",
        "test_metrics.py::test_rouge_by_hand",
    ),
    Bug(
        "recipes.recipe_optimizers._by_rate",
        "a part with its own rate is moved twice",
        'if own.get(id(p), "") == name]',
        'if name in ("", own.get(id(p)))]',
        "test_recipes.py::test_parts_of_a_model_have_their_own_rates",
    ),
    Bug(
        "lessons.claims.at_least",
        "a number under its bound is shown as the bound",
        'or more" if value >= bound',
        'or more" if value == value',
        "test_lesson.py::test_a_number_outside_its_bound_is_shown_itself",
    ),
    Bug(
        "cli.commands.learn_pairs",
        "byte pairs take the place of the text",
        "if out.is_file() and out.samefile(name):",
        "if False:",
        "test_cli.py::test_what_is_learned_from_is_not_replaced",
    ),
    Bug(
        "cli.commands._lines",
        "a mark at the start is taken for text",
        '"utf-8-sig" if number == 1 else "utf-8"',
        '"utf-8"',
        "test_cli.py::test_a_byte_order_mark_is_no_part_of_the_text",
    ),
]
