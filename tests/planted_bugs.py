"""The bank of planted bugs: what is changed in the library, and the test that must turn red.

A bug is one replacement of text that occurs once in its file. Most of them are classics: mistakes that
students, first versions of papers and well-known code have made. To add one, add a row.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """Hold one planted bug.

    Args:
        name: What is wrong.
        file: Where, under lib/exformer.
        old: The right text.
        new: The wrong text.
        test: The test that must find it: file::function, under tests.
    """

    name: str
    file: str
    old: str
    new: str
    test: str


def _bugs(file: str, tests: str, *rows: tuple[str, str, str, str]) -> list[Bug]:
    """Read rows of (name, old, new, test); a test without a file is one of ``tests``."""
    return [
        Bug(name, file, old, new, test if "::" in test else f"{tests}::{test}")
        for name, old, new, test in rows
    ]


ATTENTION = _bugs(
    "nn/attention.py",
    "test_attention.py",
    ("scale missing", " / math.sqrt(q.size(-1))", "", "test_two_queries_by_hand"),
    ("÷ d_k for ÷ √d_k", "math.sqrt(q.size(-1))", "q.size(-1)", "test_two_queries_by_hand"),
    ("√ of the number of keys", "math.sqrt(q.size(-1))", "math.sqrt(k.size(-2))", "test_two_queries_by_hand"),
    ("softmax over queries", "softmax(dim=-1)", "softmax(dim=-2)", "test_two_queries_by_hand"),
    ("mask inverted", "scores.masked_fill(~mask", "scores.masked_fill(mask", "test_mask_by_hand"),
    (
        "mask after the softmax, not normalized again",
        "scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)",
        "pass",
        "test_mask_by_hand",
    ),
    (
        "-inf makes NaN of an empty row",
        "torch.finfo(scores.dtype).min)\n"
        "    weights = scores.softmax(dim=-1)\n"
        "    if mask is not None:\n"
        "        weights = weights.masked_fill(~mask, 0.0)\n",
        "-math.inf)\n    weights = scores.softmax(dim=-1)\n",
        "test_a_fully_masked_row_gives_zeros_and_finite_gradients",
    ),
    (
        "-1e4 is not low enough for a mask",
        "torch.finfo(scores.dtype).min",
        "-1e4",
        "test_mask_wins_over_the_largest_scores",
    ),
    (
        "empty row attends to everything",
        "weights = weights.masked_fill(~mask, 0.0)",
        "pass",
        "test_a_fully_masked_row_gives_zeros_and_finite_gradients",
    ),
    (
        "scores returned for weights",
        "weights @ v, weights",
        "weights @ v, scores",
        "test_two_queries_by_hand",
    ),
)

MULTI_HEAD = _bugs(
    "nn/multi_head.py",
    "test_multi_head.py",
    (
        "heads cut by view for transpose",
        "x.unflatten(-1, (n_heads, -1)).transpose(1, 2)",
        "x.reshape(x.size(0), n_heads, x.size(1), -1)",
        "test_split_heads_by_hand",
    ),
    (
        "heads not put back: view for transpose",
        "x.transpose(1, 2).flatten(start_dim=2)",
        "x.reshape(x.size(0), x.size(2), -1)",
        "test_merge_heads_undoes_split_heads",
    ),
    (
        "heads interleaved",
        "x.unflatten(-1, (n_heads, -1)).transpose(1, 2)",
        "x.unflatten(-1, (-1, n_heads)).movedim(-1, 1)",
        "test_split_heads_by_hand",
    ),
    ("no output projection", "self.w_o(merge_heads(heads))", "merge_heads(heads)", "test_parity_with_torch"),
    (
        "values projected by the keys' matrix",
        'self._heads(value, self.w_v, name="value"',
        'self._heads(value, self.w_k, name="value"',
        "test_parity_with_torch",
    ),
    ("values taken from the keys", "self._heads(value,", "self._heads(key,", "test_two_heads_by_hand"),
    ("mask forgotten", "mask=mask, bias=bias, dropout", "bias=bias, dropout", "test_parity_with_torch"),
    (
        "weights without the mask",
        "scaled_dot_product_attention(q, k, k, mask=",
        "scaled_dot_product_attention(q, k, k, mask=None and ",
        "test_parity_with_torch",
    ),
    (
        "mask with the heads' axis in front of the batch's",
        "mask.unsqueeze(-3) if mask.dim() == 3 else mask[None, None]",
        "mask[None] if mask.dim() == 3 else mask[None, None]",
        "test_parity_with_torch",
    ),
    (
        "dropout in evaluation",
        "self.dropout if self.training else 0.0",
        "self.dropout",
        "test_dropout_works_in_training_and_is_off_in_evaluation",
    ),
    (
        "no dropout in training",
        "self.dropout if self.training else 0.0",
        "0.0",
        "test_dropout_works_in_training_and_is_off_in_evaluation",
    ),
    (
        "width that heads do not divide accepted",
        "if n_heads < 1 or d_model % n_heads:",
        "if n_heads < 1:",
        "test_a_width_that_heads_do_not_divide_is_refused",
    ),
)

MASKS = _bugs(
    "nn/masks.py",
    "test_masks.py",
    ("causal mask hides the position itself", ".tril()", ".tril(-1)", "test_causal_mask_by_hand"),
    ("causal mask shows the next position", ".tril()", ".tril(1)", "test_causal_mask_by_hand"),
    ("causal mask upside down", ".tril()", ".triu()", "test_causal_mask_by_hand"),
    ("padding mask inverted", "(ids != pad_id)", "(ids == pad_id)", "test_padding_mask_by_hand"),
    ("padding is always 0", "(ids != pad_id)", "(ids != 0)", "test_padding_mask_by_hand"),
    (
        "padded queries hidden, not padded keys",
        "(ids != pad_id).unsqueeze(1)",
        "(ids != pad_id).unsqueeze(2)",
        "test_padding_mask_by_hand",
    ),
    (
        "polarity of PyTorch's masks kept",
        "return ~mask",
        "return mask",
        "test_from_torch_mask_turns_torchs_causal_mask_into_ours",
    ),
    (
        "additive mask inverted",
        "return mask == 0",
        "return mask != 0",
        "test_from_torch_mask_turns_torchs_causal_mask_into_ours",
    ),
    (
        "masks of numbers accepted",
        "if mask.dtype != torch.bool:",
        "if False:",
        "test_check_mask_refuses_other_types_and_names_the_way_out",
    ),
    (
        "mask may widen the batch",
        "x.dim() <= len(shape) and",
        "",
        "test_check_mask_refuses_what_does_not_fit",
    ),
)

NORMALIZATION = _bugs(
    "nn/normalization.py",
    "test_normalization.py",
    (
        "unbiased variance",
        "((x - mean) ** 2).mean(dim=-1, keepdim=True)",
        "x.var(dim=-1, keepdim=True)",
        "test_layer_norm_by_hand",
    ),
    (
        "ε outside the root",
        "torch.sqrt(variance + eps)",
        "(torch.sqrt(variance) + eps)",
        "test_eps_stands_under_the_root_by_hand",
    ),
    (
        "divided by the variance",
        "torch.sqrt(variance + eps)",
        "(variance + eps)",
        "test_layer_norm_by_hand",
    ),
    ("gain missing", "return gain * (x - mean)", "return (x - mean)", "test_layer_norm_by_hand"),
    (
        "bias missing",
        "torch.sqrt(variance + eps) + bias",
        "torch.sqrt(variance + eps)",
        "test_layer_norm_by_hand",
    ),
    ("mean not taken away", "gain * (x - mean) /", "gain * x /", "test_layer_norm_by_hand"),
    (
        "normalized over the sequence",
        "mean = x.mean(dim=-1",
        "mean = x.mean(dim=0",
        "test_parity_with_torch",
    ),
    (
        "module forgets its ε",
        "self.gain, self.bias, self.eps)",
        "self.gain, self.bias)",
        "test_eps_stands_under_the_root_by_hand",
    ),
    (
        "gain starts at 0",
        "torch.ones(d_model))\n        self.bias",
        "torch.zeros(d_model))\n        self.bias",
        "test_gain_starts_at_1_and_bias_at_0",
    ),
)

EMBEDDING = _bugs(
    "nn/embedding.py",
    "test_embedding.py",
    (
        "a text without a batch is let through",
        "if ids.dim() != 2:",
        "if False:",
        "test_encoder_lm.py::test_one_text_is_a_batch_of_one",
    ),
    ("scale missing", "math.sqrt(d_model) if scale else 1.0", "1.0", "test_token_embedding_by_hand"),
    ("× d_model for × √d_model", "math.sqrt(d_model) if", "d_model if", "test_token_embedding_by_hand"),
    (
        "logits scaled too",
        "F.linear(hidden, self",
        "F.linear(hidden * self.factor, self",
        "test_logits_by_hand",
    ),
    (
        "vectors start too large",
        "torch.randn(vocab_size, d_model) / math.sqrt(d_model)",
        "torch.randn(vocab_size, d_model)",
        "test_scaled_vectors_start_with_variance_one",
    ),
    (
        "ids wrap around",
        "F.embedding(ids, table)",
        "F.embedding(ids % table.size(0), table)",
        "test_ids_outside_the_vocabulary_are_refused",
    ),
)

POSITIONAL = _bugs(
    "nn/positions/absolute.py",
    "test_positional.py",
    (
        "positions counted from 1",
        "torch.arange(n_positions, dtype",
        "torch.arange(1, n_positions + 1, dtype",
        "test_sinusoidal_encoding_by_hand",
    ),
    (
        "sine and cosine swapped",
        "(angle.sin(), angle.cos())",
        "(angle.cos(), angle.sin())",
        "test_sinusoidal_encoding_by_hand",
    ),
    (
        "all sines, then all cosines",
        "torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(start_dim=-2)",
        "torch.cat((angle.sin(), angle.cos()), dim=-1)",
        "test_sinusoidal_encoding_by_hand",
    ),
    ("base 1,000", "base: float = 10_000.0", "base: float = 1_000.0", "test_the_papers_base_is_the_default"),
    (
        "base not used",
        "frequency = base **",
        "frequency = 10_000.0 **",
        "test_sinusoidal_encoding_is_the_papers_formula",
    ),
    (
        "exponent i/d for 2i/d",
        "torch.arange(0, d_model, 2, dtype",
        "torch.arange(d_model // 2, dtype",
        "test_sinusoidal_encoding_is_the_papers_formula",
    ),
    (
        "frequencies rise",
        "base ** (-torch.arange",
        "base ** (torch.arange",
        "test_sinusoidal_encoding_by_hand",
    ),
    (
        "start ignored",
        "table[start : start + x.size(1)]",
        "table[: x.size(1)]",
        "test_a_later_start_gives_the_later_rows",
    ),
    (
        "longest sentence refused",
        "end > max_len",
        "end >= max_len",
        "test_a_later_start_gives_the_later_rows",
    ),
    (
        "table saved with the weights",
        "persistent=False",
        "persistent=True",
        "test_sinusoidal_table_is_not_saved_and_not_learned",
    ),
)

SIMPLE_POSITIONS = _bugs(
    "nn/positions/simple.py",
    "test_simple_positions.py",
    (
        "integers in every column",
        "code[:, 0] = values",
        "code += values[:, None]",
        "test_three_positions_by_hand",
    ),
    (
        "fractions never reach 1",
        "max(n_positions - 1, 1)",
        "n_positions",
        "test_fractions_depend_on_the_length",
    ),
    (
        "0/0 in a sequence of one",
        "max(n_positions - 1, 1)",
        "(n_positions - 1)",
        "test_fractions_depend_on_the_length",
    ),
    (
        "the slowest digit first",
        ">> digit & 1",
        ">> digit.flip(0) & 1",
        "test_square_waves_are_the_binary_digits",
    ),
    (
        "digits wrap around in wide models",
        ".clamp(max=62)",
        " % 64",
        "test_square_waves_are_as_wide_as_any_model",
    ),
    (
        "one-hot codes return to the first column",
        "torch.eye(n_positions, d_model)",
        "torch.eye(n_positions, d_model).roll(1, dims=1)",
        "test_three_positions_by_hand",
    ),
    (
        "one digit too many is asked for",
        "n_positions > 2**d_model",
        "n_positions >= 2**d_model",
        "test_binary_digits_run_out",
    ),
)

DROPOUT = _bugs(
    "nn/dropout.py",
    "test_dropout.py",
    (
        "kept share and dropped share exchanged",
        ".ge_(rate)",
        ".lt_(rate)",
        "test_the_share_of_zeros_and_the_scale",
    ),
    (
        "what is kept not scaled up",
        "keep.to(x.dtype).div_(1.0 - rate)",
        "keep.to(x.dtype)",
        "test_the_share_of_zeros_and_the_scale",
    ),
    (
        "whole rows dropped",
        "torch.rand_like(x, dtype=torch.float32)",
        "torch.rand_like(x[..., :1], dtype=torch.float32)",
        "test_each_number_is_dropped_by_itself",
    ),
    (
        "scale that carries no slope",
        "return x * keep",
        "return x.detach() * keep",
        "test_the_slope_flows_through_what_is_kept",
    ),
    (
        "dropout in evaluation",
        "if self.training and self.rate else x",
        "if self.rate else x",
        "test_it_is_off_in_evaluation",
    ),
    (
        "no dropout in training",
        "if self.training and self.rate else x",
        "if not self.training and self.rate else x",
        "test_it_is_off_in_evaluation",
    ),
)

FEED_FORWARD = _bugs(
    "nn/feedforward.py",
    "test_feedforward.py",
    (
        "no bend",
        "ACTIVATIONS[self.activation](self.w_1(x))",
        "self.w_1(x)",
        "test_feed_forward_by_hand",
    ),
    (
        "bend after the second map too",
        "return self.w_2(self.dropout(hidden))",
        "return ACTIVATIONS[self.activation](self.w_2(self.dropout(hidden)))",
        "test_parity_with_torch",
    ),
    (
        "approximate gelu",
        '"gelu": F.gelu',
        '"gelu": lambda x: F.gelu(x, approximate="tanh")',
        "test_parity_with_torch",
    ),
    (
        "dropout after the second map",
        "self.w_2(self.dropout(hidden))",
        "self.dropout(self.w_2(hidden))",
        "test_dropout_stands_before_the_second_map",
    ),
)

LAYERS = _bugs(
    "nn/layers.py",
    "test_layers.py",
    (
        "residual missing",
        "norm(x + dropout(sublayer(x)))",
        "norm(dropout(sublayer(x)))",
        "test_residual_by_hand",
    ),
    (
        "residual missing in pre-norm",
        "x + dropout(sublayer(norm(x)))",
        "dropout(sublayer(norm(x)))",
        "test_residual_by_hand",
    ),
    ("pre- and post-norm swapped", "    if pre_norm:", "    if not pre_norm:", "test_residual_by_hand"),
    (
        "pre-norm adds to the normalized input",
        "x + dropout(sublayer(norm(x)))",
        "norm(x) + dropout(sublayer(norm(x)))",
        "test_residual_by_hand",
    ),
    (
        "dropout on the sum",
        "norm(x + dropout(sublayer(x)))",
        "norm(dropout(x + sublayer(x)))",
        "test_residual_by_hand",
    ),
    (
        "memory mask forgotten",
        "self.cross_attention(h, memory, memory, mask=memory_mask)",
        "self.cross_attention(h, memory, memory)",
        "test_decoder_layer_parity_with_torch",
    ),
    (
        "cross-attention looks at the target",
        "self.cross_attention(h, memory, memory, mask=memory_mask)",
        "self.cross_attention(h, h, h)",
        "test_decoder_layer_parity_with_torch",
    ),
    (
        "one norm used twice",
        "norm=self.norm_cross,",
        "norm=self.norm_self,",
        "test_decoder_layer_parity_with_torch",
    ),
    (
        "weights of a pre-norm layer without the norm",
        "h = self.norm_attention(x) if self.pre_norm else x",
        "h = x",
        "test_encoder_layer_can_be_rebuilt_from_its_weights",
    ),
    (
        "cross weights without the norm",
        "h = self.norm_cross(x) if self.pre_norm else x",
        "h = x",
        "test_decoder_layer_can_be_rebuilt_from_its_weights",
    ),
    (
        "relative positions not passed on",
        "n_heads=n_heads, positions=positions)\n        self.cross",
        "n_heads=n_heads)\n        self.cross",
        "test_relative_positions_act_in_the_self_attention_only",
    ),
    (
        "cross weights with dropout",
        '{"dropout": nn.Identity(), "pre_norm"',
        '{"dropout": self.dropout, "pre_norm"',
        "test_weights_are_shown_without_dropout",
    ),
)

MODEL = _bugs(
    "models/encoder_decoder.py",
    "test_encoder_decoder.py",
    (
        "encoder sees padding",
        "x = layer(x, mask=mask)\n        return",
        "x = layer(x)\n        return",
        "test_more_padding_changes_nothing",
    ),
    (
        "decoder sees source padding",
        '"memory_mask": padding_mask(src, pad_id=pad_id)',
        '"memory_mask": None',
        "test_more_padding_changes_nothing",
    ),
    (
        "decoder sees the future",
        "causal_mask(tgt.size(1), device=tgt.device) & padding_mask",
        "padding_mask",
        "test_the_past_does_not_see_the_future_bit_for_bit",
    ),
    (
        "decoder sees target padding",
        " & padding_mask(tgt, pad_id=pad_id)",
        "",
        "test_attention_weights_have_their_shapes_and_see_no_padding_and_no_future",
    ),
    (
        "final norm of the encoder missing",
        "self.encoder_norm = LayerNorm(c.d_model) if c.pre_norm else nn.Identity()",
        "self.encoder_norm = nn.Identity()",
        "test_number_of_parameters_by_hand",
    ),
    (
        "final norm of the decoder not applied",
        "x = self.decoder_norm(x)",
        "pass",
        "test_parity_with_torch",
    ),
    (
        "weights with the memory before its norm",
        "memory = self.encoder_norm(x)",
        "memory = x",
        "test_attention_weights_are_those_of_the_forward_pass",
    ),
    (
        "output not tied",
        "None if c.tie_output else nn.Linear",
        "nn.Linear",
        "test_number_of_parameters_by_hand",
    ),
    (
        "tied to the source's table",
        "self.tgt_embedding.logits(x)",
        "nn.functional.linear(x, self.src_embedding.table)",
        "test_parity_with_torch",
    ),
    (
        "no positions in the decoder",
        "self.tgt_positions(self.tgt_embedding(tgt))",
        "self.tgt_embedding(tgt)",
        "test_parity_with_torch",
    ),
    (
        "relative positions in the decoder only",
        "positions=relative_positions(c)",
        "positions=relative_positions(c) if kind is DecoderLayer else None",
        "test_relative_positions_act_in_every_self_attention_and_nowhere_else",
    ),
    (
        "sinusoids beside relative positions",
        "= added_positions(c), added_positions(c)",
        "= (added_positions(type(c)(9, 9, d_model=c.d_model, max_len=c.max_len)) for _ in range(2))",
        "test_what_positions_tell",
    ),
    (
        "embeddings not dropped",
        "self.dropout(self.src_positions((self.src_embedding or self.tgt_embedding)(src)))",
        "self.src_positions((self.src_embedding or self.tgt_embedding)(src))",
        "test_embeddings_are_dropped_too",
    ),
    (
        "first layer used twice",
        "for layer in self.decoder:\n            x = layer(x, memory, **masks)",
        "for _ in self.decoder:\n            x = self.decoder[0](x, memory, **masks)",
        "test_parity_with_torch",
    ),
)

DECODER_LM = _bugs(
    "models/decoder_lm.py",
    "test_decoder_lm.py",
    (
        "the future is seen",
        "x = layer(x, mask=mask)\n        return self.norm(x)",
        "x = layer(x)\n        return self.norm(x)",
        "test_a_symbol_moves_its_own_future_only",
    ),
    ("last norm missing", "return self.norm(x)", "return x", "test_parity_with_torch"),
    (
        "last norm in post-norm too",
        "LayerNorm(c.d_model) if c.pre_norm else nn.Identity()",
        "LayerNorm(c.d_model)",
        "test_parity_with_torch",
    ),
    (
        "positions forgotten",
        "x = self.positions(self.embedding(ids))",
        "x = self.embedding(ids)",
        "test_parity_with_torch",
    ),
    (
        "relative positions forgotten",
        "positions=relative_positions(c)",
        "positions=None",
        "test_the_order_of_the_past_counts_where_there_are_positions",
    ),
    (
        "weights are all of the first layer",
        "            x = layer(x, mask=mask)\n        return tuple",
        "        return tuple",
        "test_weights_are_those_of_the_forward_pass",
    ),
)

ENCODER_LM = _bugs(
    "models/encoder_lm.py",
    "test_encoder_lm.py",
    (
        "padding is read",
        "x = layer(x, mask=mask)\n        return x",
        "x = layer(x)\n        return x",
        "test_padding_changes_nothing",
    ),
    (
        "zero is always the padding",
        "pad_id=self.config.pad_id)",
        "pad_id=0)",
        "test_another_padding_symbol",
    ),
    (
        "sum of the embeddings not normalized",
        "self.dropout(self.norm_embedding(x))",
        "self.dropout(x)",
        "test_parity_with_torch",
    ),
    (
        "embedding scaled as in the paper",
        "TokenEmbedding(c.vocab_size, d_model=c.d_model, scale=False)",
        "TokenEmbedding(c.vocab_size, d_model=c.d_model)",
        "test_parity_with_torch",
    ),
    (
        "no bend in the head",
        "F.gelu(self.transform(hidden))",
        "self.transform(hidden)",
        "test_parity_with_torch",
    ),
    ("no bias of the symbols", " + self.output_bias", "", "test_parity_with_torch"),
)

LOSS = _bugs(
    "training/loss.py",
    "test_loss.py",
    (
        "padding counts",
        "dtype=torch.bool) if pad_id is None else flat != pad_id",
        "dtype=torch.bool)",
        "test_padding_by_hand",
    ),
    ("padding in the divisor", "[counts].mean()", "[counts].sum() / len(targets)", "test_padding_by_hand"),
    ("sum for mean", "[counts].mean()", "[counts].sum()", "test_cross_entropy_by_hand"),
    (
        "the loss in half precision",
        "torch.float32 if half else None",
        "None",
        "test_half_precision_loses_no_digit_of_the_loss",
    ),
    (
        "smoothing forgotten",
        "return _surprise(log_p, targets, label_smoothing)[counts]",
        "return _surprise(log_p, targets, 0.0)[counts]",
        "test_label_smoothing_by_hand",
    ),
    (
        "padding gets a gradient",
        "(slope * counts / counts.sum())",
        "(slope / counts.sum()).expand(len(targets))",
        "test_parity_with_torch_and_with_the_mathematics_written_out",
    ),
    (
        "gradient divided by padding too",
        "slope * counts / counts.sum()",
        "slope * counts / len(counts)",
        "test_parity_with_torch_and_with_the_mathematics_written_out",
    ),
    (
        "gradient of the loss without smoothing",
        "difference -= ctx.label_smoothing / log_p.size(-1)",
        "pass",
        "test_parity_with_torch_and_with_the_mathematics_written_out",
    ),
    (
        "target's share in the gradient",
        "(len(targets), 1), ctx.label_smoothing - 1)",
        "(len(targets), 1), -1.0)",
        "test_parity_with_torch_and_with_the_mathematics_written_out",
    ),
    (
        "slope of what follows forgotten",
        "(slope * counts / counts.sum())",
        "(counts / counts.sum())",
        "test_a_multiple_of_the_loss_has_a_multiple_of_its_gradient",
    ),
    (
        "smoothing over |V| - 1",
        "label_smoothing * log_p.mean(dim=-1)",
        "label_smoothing * log_p.sum(dim=-1) / (log_p.size(-1) - 1)",
        "test_label_smoothing_by_hand",
    ),
    (
        "target keeps its whole share",
        "-(1 - label_smoothing) * of_target",
        "-of_target",
        "test_label_smoothing_by_hand",
    ),
)

TRAINING = _bugs(
    "training/loop.py",
    "test_training.py",
    (
        "a negative limit turns every step",
        "not clip_norm > 0",
        "clip_norm == 0",
        "test_a_limit_that_would_stop_or_turn_every_step_is_refused",
    ),
    (
        "warm-up one step late",
        "step * warmup**-1.5",
        "(step - 1) * warmup**-1.5",
        "test_warmup_schedule_by_hand",
    ),
    ("max for min", "d_model**-0.5 * min(", "d_model**-0.5 * max(", "test_warmup_schedule_by_hand"),
    ("width left out of the rate", "d_model**-0.5 * min", "min", "test_warmup_schedule_by_hand"),
    (
        "schedule one step early",
        "schedule(step)\n",
        "schedule(step + 1)\n",
        "test_each_step_has_its_own_rate_and_a_gradient_of_its_own",
    ),
    (
        "schedule for the first group alone",
        "in optimizer.param_groups if",
        "in optimizer.param_groups[:1] if",
        "test_schedule_reaches_all_groups_of_the_optimizer",
    ),
    (
        "gradient not zeroed",
        "optimizer.zero_grad(set_to_none=True)",
        "pass",
        "test_each_step_has_its_own_rate_and_a_gradient_of_its_own",
    ),
    (
        "gradient zeroed before the step",
        "                loss.backward()\n",
        "                loss.backward()\n                model.zero_grad()\n",
        "test_one_step_by_hand",
    ),
    (
        "clipped after the step",
        "        if clip_norm is not None:\n",
        "        optimizers[0][0].step()\n        model.zero_grad()\n        if clip_norm is not None:\n",
        "test_clipping_by_hand",
    ),
    (
        "each number clipped by itself",
        "nn.utils.clip_grad_norm_(model.parameters(), clip_norm)",
        "nn.utils.clip_grad_value_(model.parameters(), clip_norm)",
        "test_clipping_by_hand",
    ),
    ("left in evaluation mode", "    model.train()\n", "", "test_model_is_put_into_training_mode"),
    (
        "a loss that is not a number accepted",
        "if not math.isfinite(loss):",
        "if False:",
        "test_a_loss_that_is_not_a_number_stops_before_the_step",
    ),
    ("each part counts as a whole", " * part.share", "", "test_parts_are_one_batch"),
    ("the last part's loss alone", "stack(losses).sum()", "stack(losses)[-1]", "test_parts_are_one_batch"),
    ("steps counted from 1 again", "start=first)", "start=1)", "test_later_steps_have_later_rates"),
    (
        "one rate for all optimizers",
        'group["lr"] = schedule(step)',
        'group["lr"] = optimizers[0][1](step)',
        "test_each_optimizer_has_its_own_rate",
    ),
    ("numpy not seeded", "    np.random.seed(seed)\n", "", "test_set_seed_sets_all_three_generators"),
)

TOKEN_BATCHES = _bugs(
    "data/sampler.py",
    "test_token_batches.py",
    (
        "every epoch in the same order",
        "default_rng((self.seed, number))",
        "default_rng((self.seed, 0))",
        "test_each_epoch_and_each_seed_has_an_order_of_its_own",
    ),
    (
        "one batch left out too many",
        "yield from batches[done:]",
        "yield from batches[done + bool(done) :]",
        "test_going_on_is_as_if_never_cut",
    ),
    (
        "goes on in the next epoch's batches",
        "max(0, done - len(batches))",
        "0",
        "test_going_on_is_as_if_never_cut",
    ),
    (
        "the sentence that is too much stays",
        "(end + 1 - first) * width",
        "(end - first) * width",
        "test_an_epoch_has_each_sentence_once_and_no_batch_too_much",
    ),
    (
        "the last sentences lost",
        "        yield rows[first:]\n",
        "        yield rows[first : len(rows) - 1]\n",
        "test_an_epoch_has_each_sentence_once_and_no_batch_too_much",
    ),
    (
        "each process normalizes by its own tokens",
        "share = source.n_targets(own) / whole",
        "share = 1 / n_parts",
        "test_parts_are_the_batch",
    ),
    (
        "all processes read the same rows",
        "range(process * accumulate, (process + 1) * accumulate)",
        "range(accumulate)",
        "test_parts_are_the_batch",
    ),
    (
        "the last window never begins",
        "- self.width, size",
        "- self.width - 1, size",
        "test_windows_are_cut_anywhere",
    ),
)

AUTOREGRESSIVE = _bugs(
    "generation/autoregressive.py",
    "test_autoregressive.py",
    ("min for max", "logits.max(dim=-1)", "logits.min(dim=-1)", "test_generation.py::test_greedy_by_hand"),
    (
        "scores that are no numbers become texts",
        "if not of_rows.isfinite().all():",
        "if False:",
        "test_scores_without_a_distribution_are_refused",
    ),
    (
        "does not stop",
        "if finished.all():",
        "if False:",
        "test_generation.py::test_greedy_is_the_loop_for_each_sequence",
    ),
    (
        "stops when the first has ended",
        "if finished.all():",
        "if finished.any():",
        "test_generation.py::test_greedy_is_the_loop_for_each_sequence",
    ),
    (
        "ended sequences go on",
        "chosen = chosen.masked_fill(finished, eos_id)",
        "pass",
        "test_generation.py::test_greedy_is_the_loop_for_each_sequence",
    ),
    (
        "end symbol kept",
        "row.index(eos_id)]",
        "row.index(eos_id) + 1]",
        "test_generation.py::test_greedy_by_hand",
    ),
    (
        "prompt returned as well",
        "ids[:, prompts.size(1) :]",
        "ids",
        "test_generation.py::test_greedy_by_hand",
    ),
    (
        "prompts padded behind",
        "pad([row[::-1] for row in sequences], pad_id=pad_id).flip(1)",
        "pad(sequences, pad_id=pad_id)",
        "test_padding_in_front_by_hand",
    ),
    (
        "padding counted inside a text too",
        ".long().cumprod(dim=1).sum(dim=1)",
        ".long().sum(dim=1)",
        "test_padding_in_front_by_hand",
    ),
    (
        "scores read behind the padding",
        "last = ids.size(1) - 1 - count",
        "last = ids.size(1) - 1 - 0 * count",
        "test_padding_in_front_changes_no_score",
    ),
    (
        "padding left in front of the model",
        "(places + count) % ids.size(1)",
        "(places + 0 * count) % ids.size(1)",
        "test_padding_in_front_changes_no_score",
    ),
)

SAMPLING = _bugs(
    "generation/sampling.py",
    "test_sampling.py",
    (
        "a random number of 1 draws a symbol that is none",
        "(uniform < 1)",
        "(uniform <= 1)",
        "test_numbers_that_draw_nothing_are_refused",
    ),
    ("temperature multiplied", "logits / temperature", "logits * temperature", "test_temperature_by_hand"),
    (
        "temperature divides the probabilities",
        "return logits / temperature",
        "return (logits.softmax(-1) / temperature).log()",
        "test_temperature_by_hand",
    ),
    ("top-k keeps k + 1", "order[..., k:]", "order[..., k + 1 :]", "test_top_k_by_hand"),
    (
        "top-k keeps the worst",
        "order[..., k:]",
        "order[..., : order.size(-1) - k]",
        "test_top_k_by_hand",
    ),
    (
        "cut off by 0 for minus infinity",
        "order[..., k:], -math.inf)",
        "order[..., k:], 0.0)",
        "test_top_k_by_hand",
    ),
    (
        "top-p cut before the threshold",
        "(reached < p).sum(dim=-1, keepdim=True) + 1",
        "(reached <= p).sum(dim=-1, keepdim=True)",
        "test_top_p_by_hand",
    ),
    (
        "top-p goes one too far where p is met",
        "(reached < p)",
        "(reached <= p)",
        "test_top_p_stops_where_the_sum_is_p_itself",
    ),
    (
        "top-p cut by rank, not by symbol",
        "torch.zeros_like(cut).scatter(-1, order, cut)",
        "cut",
        "test_top_p_by_hand",
    ),
    (
        "top-p sums scores, not probabilities",
        "logits.double().softmax(dim=-1).gather",
        "logits.double().gather",
        "test_top_p_by_hand",
    ),
    (
        "a p of 1 loses the tail to rounding",
        "if p == 1.0:",
        "if False:",
        "test_a_p_of_1_keeps_what_rounding_would_lose",
    ),
    ("impossible symbols drawn", "right=True", "right=False", "test_draw_by_hand"),
    (
        "one random number for the whole batch",
        "draw(logits if change is None else change(logits), uniform[step])",
        "draw(logits if change is None else change(logits), uniform[step, :1].expand(len(logits)))",
        "test_shares_of_samples_are_the_models_probabilities",
    ),
    (
        "the same random number at each step",
        "uniform[step])",
        "uniform[0])",
        "test_sampling_is_the_loop",
    ),
    (
        "random numbers shared out by step",
        "torch.stack([torch.rand(max_new_tokens, **options) for _ in prompts], dim=1)",
        "torch.rand(max_new_tokens, len(prompts), **options)",
        "test_a_batch_is_drawn_as_one_by_one",
    ),
    (
        "generator ignored",
        '"generator": generator, "device"',
        '"device"',
        "test_a_seed_reproduces_and_the_global_one_is_left_alone",
    ),
)

BEAM_SEARCH = [
    *_bugs(
        "generation/exhaustive.py",
        "test_beam_search.py",
        (
            "not normalized by length",
            "return log_probability / n_symbols**alpha",
            "return log_probability",
            "test_length_is_made_up_for",
        ),
        (
            "scores that are no numbers",
            "    if scores.isnan().any():",
            "    if False:",
            "test_refusals_of_both",
        ),
        (
            "length multiplied",
            "log_probability / n_symbols**alpha",
            "log_probability * n_symbols**alpha",
            "test_scores_by_hand",
        ),
        (
            "end symbol not counted",
            "len(self.ids) + self.ended",
            "max(len(self.ids), 1)",
            "test_scores_by_hand",
        ),
        (
            "what is cut off is no text",
            "ended if n_symbols < max_new_tokens else torch.ones_like(ended)",
            "ended",
            "test_all_texts_are_there_with_their_probabilities",
        ),
        (
            "the worst text first",
            "key=lambda text: -text.score(alpha=alpha)",
            "key=lambda text: text.score(alpha=alpha)",
            "test_all_texts_are_there_with_their_probabilities",
        ),
    ),
    *_bugs(
        "generation/beam_search.py",
        "test_beam_search.py",
        (
            "the columns behind the last block forgotten",
            "columns = torch.cat((columns, behind), dim=1)",
            "pass",
            "test_in_a_large_vocabulary_too",
        ),
        (
            "too few blocks searched",
            "cut.amax(dim=-1).topk(n)",
            "cut.amax(dim=-1).topk(1)",
            "test_in_a_large_vocabulary_too",
        ),
        (
            "finished beams go on",
            "live = live.masked_fill(ended, -torch.inf)",
            "pass",
            "test_beam_search_is_the_loop",
        ),
        (
            "places filled again",
            "places = places - ended.sum(dim=1, keepdim=True)",
            "pass",
            "test_a_text_that_ends_leaves_its_place_empty",
        ),
        (
            "probabilities of the beginnings forgotten",
            "live[..., None] + further",
            "0 * live.clamp(min=-1)[..., None] + further",
            "test_a_beam_of_two_sees_what_greedy_misses",
        ),
        (
            "logits summed for log-probabilities",
            "log_probabilities(logits), min",
            "logits, min",
            "test_beam_search_is_the_loop",
        ),
        (
            "half precision keeps its few digits",
            "log_probabilities(logits), min",
            "logits.log_softmax(dim=-1), min",
            "test_half_precision_keeps_the_order_of_the_scores",
        ),
        (
            "what an empty place gets counts",
            "total = total.masked_fill(live.isneginf()[..., None], -torch.inf)",
            "pass",
            "test_whatever_the_row_of_an_empty_place_gets",
        ),
        (
            "scores that are no numbers",
            "    check_log_probabilities(total)\n",
            "",
            "test_refusals_of_both",
        ),
        (
            "symbols joined to the wrong beginnings",
            "torch.cat((ids[rows], symbols",
            "torch.cat((ids, symbols",
            "test_beam_search_is_the_loop",
        ),
        (
            "one candidate too few of each beginning",
            "min(beam, logits.size(-1)))",
            "min(max(beam - 1, 1), logits.size(-1)))",
            "test_a_beam_that_holds_every_beginning_finds_the_best_of_all_texts",
        ),
        (
            "all copies of the prompt count",
            "live[:, 1:] = -torch.inf",
            "pass",
            "test_beam_search_is_the_loop",
        ),
        (
            "the last text found is returned, not the best",
            "if best is None or other.score(alpha=alpha) > best.score(alpha=alpha) else best",
            "if True else best",
            "test_beam_search_is_the_loop",
        ),
        (
            "stops at the first text that ends",
            "text is not None and text.score(alpha=alpha) >= hope",
            "text is not None",
            "test_beam_search_is_the_loop",
        ),
        (
            "never stops early",
            "text is not None and text.score(alpha=alpha) >= hope",
            "False",
            "test_it_stops_when_nothing_can_win_any_more",
        ),
        (
            "hope for the length so far only",
            "longest=max_new_tokens",
            "longest=n_symbols",
            "test_beam_search_is_the_loop",
        ),
        (
            "cache not told who goes on from whom",
            "next_logits.reorder(rows)",
            "next_logits.reorder(torch.arange(len(rows)))",
            "test_cached.py::test_texts_of_a_language_model",
        ),
    ),
]

CACHE = [
    *_bugs(
        "nn/cache.py",
        "test_kv_cache.py",
        (
            "the queries of a mask are read as sequences",
            "mask = over_heads(mask, q, k)",
            "mask = None if mask is None else mask[:, None]",
            "test_masks_mean_what_they_mean_to_attention",
        ),
        (
            "new keys written one position too early",
            "room.k[:, :, start : self.n], room.v",
            "room.k[:, :, max(start - 1, 0) : self.n][:, :, : new.k.size(2)], room.v",
            "test_positions_are_put_behind_by_hand",
        ),
        (
            "a full room is left behind with what it holds",
            "if self._room is not None:",
            "if self._room is False:",
            "test_positions_are_put_behind_by_hand",
        ),
        (
            "room for the newest only",
            "heads, 2 * self.n, d_head",
            "heads, self.n, d_head",
            "test_few_positions_are_moved",
        ),
        (
            "values taken in the old order",
            "self.v.index_select(0, rows)",
            "self.v[: len(rows)]",
            "test_rows_change_places_by_hand",
        ),
        (
            "beams not reordered",
            "self._room = self._room.take(rows)",
            "self._room = self._room.take(rows.sort().values)",
            "test_rows_change_places_by_hand",
        ),
        (
            "keys of the old positions forgotten",
            "q, k, bias = attention.positions(q, k)",
            "q, k, bias = attention.positions(q, k[:, :, -q.size(2) :])",
            "test_the_newest_queries_get_what_they_get_among_all",
        ),
        (
            "bias of ALiBi left out",
            "    if bias is not None:\n        heads",
            "    if False:\n        heads",
            "test_the_newest_queries_get_what_they_get_among_all",
        ),
    ),
    *_bugs(
        "nn/cached_layers.py",
        "test_kv_cache.py",
        (
            "attention without the norm",
            "lambda h: _attend_to_past(attention, h, cache=cache, mask=mask), norm=layer.norm_attention",
            "lambda h, x=x: _attend_to_past(attention, x, cache=cache, mask=mask), norm=layer.norm_attention",
            "test_an_encoder_layer_in_pieces_is_the_layer_at_once",
        ),
        (
            "cross-attention sees the source's padding",
            "h, memory, mask=memory_mask)",
            "h, memory, mask=memory_mask | True)",
            "test_a_decoder_layer_in_pieces_is_the_layer_at_once",
        ),
        (
            "the rows of a beam ask the sources in turn",
            "together = h.reshape(len(memory.k), -1, h.size(-1))",
            "together = h.reshape(-1, len(memory.k), h.size(-1)).transpose(0, 1)",
            "test_rows_of_one_source_ask_its_memory_together",
        ),
    ),
    *_bugs(
        "generation/cached.py",
        "test_cached.py",
        (
            "the texts of the last call may be written over",
            "ids.clone()",
            "ids",
            "test_texts_that_their_owner_changes_are_noticed",
        ),
        (
            "the translations of the last call may be written over",
            "tgt.clone()",
            "tgt",
            "test_texts_that_their_owner_changes_are_noticed",
        ),
        (
            "positions of a language model off by one",
            "self._codes[places.clamp(min=0)]",
            "self._codes[(places - (start > 0)).clamp(min=0)]",
            "test_scores_of_a_language_model",
        ),
        (
            "positions counted from the padding on",
            "self._codes[places.clamp(min=0)]",
            "self._codes[(places + padding).clamp(max=longest - 1)]",
            "test_scores_of_unequal_texts",
        ),
        (
            "every step at the first position",
            "tgt[:, start:]), start=start)",
            "tgt[:, start:]), start=0)",
            "test_scores_of_a_translator",
        ),
        (
            "padding in front seen",
            ">= self._count)[:, None]",
            ">= 0 * self._count)[:, None]",
            "test_scores_of_unequal_texts",
        ),
        (
            "padding in a target seen",
            "_unless_all(padding_mask(tgt, pad_id=model.config.pad_id))",
            "_unless_all(padding_mask(tgt, pad_id=-1))",
            "test_scores_of_a_translator",
        ),
        (
            "mask of the first steps for the newest",
            "causal_mask(n, device=device)[start:]",
            "causal_mask(n, device=device)[: n - start]",
            "test_scores_of_a_language_model",
        ),
        (
            "all positions computed in each step",
            "_count_known(ids, self._ids)",
            "0 * _count_known(ids, self._ids)\n        self._caches = [type(c)() for c in self._caches]",
            "test_each_position_is_computed_once",
        ),
        (
            "sources not reordered",
            "[kept.take(sources) for kept in self._memory]",
            "[kept.take(sources.sort().values) for kept in self._memory]",
            "test_rows_change_places",
        ),
        (
            "each row of a beam takes the source of its number",
            "self._tgt[rows], rows // n_each",
            "self._tgt[rows], rows % len(self._src)",
            "test_a_beam_asks_one_memory_and_rows_may_leave_their_sentence",
        ),
        (
            "padding of the rows not reordered",
            "else self._count[rows]",
            "else self._count[: len(rows)]",
            "test_rows_change_places",
        ),
        (
            "other texts accepted",
            "or not torch.equal(ids[:, :n], known)",
            "",
            "test_other_texts_than_those_of_the_last_call_are_refused",
        ),
    ),
]

GENERATION = _bugs(
    "generation/translate.py",
    "test_generation.py",
    (
        "a long sentence is found at last",
        "    _encode(sentences, src_tokenizer, limit=model.config.max_len)\n    out",
        "    out",
        "test_a_sentence_that_is_too_long_is_found_before_any_is_translated",
    ),
    (
        "sentences lost where none are translated at once",
        "if at_once < 1:",
        "if at_once == 0:",
        "test_many_sentences_are_not_lost_by_translating_none_at_once",
    ),
    (
        "dropout in translation",
        "with evaluating(model):",
        "with torch.no_grad():",
        "test_translate_switches_dropout_off_and_on_again",
    ),
    (
        "mode not put back after an error",
        "    try:\n        with torch.no_grad():\n            yield\n    finally:\n",
        "    with torch.no_grad():\n        yield\n    if True:\n",
        "test_evaluating_puts_back_what_it_found",
    ),
    (
        "frozen parts put into training",
        "for module in were_training:",
        "for module in model.modules() if were_training else ():",
        "test_evaluating_puts_back_what_it_found",
    ),
    (
        "source without its end symbol",
        "[[*tokenizer.encode(sentence), tokenizer.eos_id] for",
        "[tokenizer.encode(sentence) for",
        "test_translate_is_the_loop_for_each_sentence_alone",
    ),
    (
        "first position read for the last",
        "memory=memory, src=src)[:, -1]",
        "memory=memory, src=src)[:, 0]",
        "test_translate_is_the_loop_for_each_sentence_alone",
    ),
    (
        "a beam asks for the sources in turn",
        "memory, src = memory.repeat_interleave(beam, dim=0), src",
        "memory, src = memory.repeat(beam, 1, 1), src",
        "test_translate_with_a_beam_searches_for_each_sentence_alone",
    ),
    (
        "0 means no limit",
        "limit if max_new_tokens is None else min(max_new_tokens, limit)",
        "min(max_new_tokens or limit, limit)",
        "test_translate_refuses_to_write_nothing",
    ),
)

TEXT = [
    *_bugs(
        "tokenizers/vocabulary.py",
        "test_tokenizer.py",
        ("special symbols written out", "if index >= len(SPECIALS)]", "]", "test_word_ids_by_hand"),
        (
            "ids wrap around",
            "if not 0 <= index < len(self)",
            "if not index < len(self)",
            "test_ids_outside_the_vocabulary_are_refused",
        ),
        (
            "close ones are looked for without end",
            "in unknown[:_MAX_HINTS]",
            "in unknown",
            "test_close_ones_are_looked_for_five_times_at_most",
        ),
    ),
    *_bugs(
        "tokenizers/words.py",
        "test_tokenizer.py",
        (
            "ids by order of appearance",
            "different = sorted(set(symbols))",
            "different = list(dict.fromkeys(symbols))",
            "test_ids_do_not_depend_on_the_order_of_the_texts",
        ),
    ),
    *_bugs(
        "tokenizers/pretokenize.py",
        "test_bpe.py",
        ("the last space left alone", "[{_SPACE}]+(?![^{_SPACE}])|[", "[", "test_pieces_by_hand"),
        (
            "numbers taken for signs",
            '_characters("L"), _characters("N")',
            '_characters("L"), "0-9"',
            "test_pieces_by_hand",
        ),
        ("numbers of other planes taken for letters", '"N": "0"', '"N": "ª"', "test_pieces_by_hand"),
    ),
    *_bugs(
        "tokenizers/bpe_merges.py",
        "test_bpe.py",
        (
            "counts that have sunk are believed",
            "if now == -count:",
            "if now:",
            "test_merges_are_those_of_counting_all_pairs_anew",
        ),
        (
            "a new pair that is only just frequent enough is left out",
            "if corpus.counts[new] >= min_count",
            "if corpus.counts[new] > min_count",
            "test_peter_piper_by_hand",
        ),
        (
            "two pairs in a row counted as one",
            "before, now = second, symbol",
            'before = now = ""',
            "test_runs_are_merged_from_the_left",
        ),
        (
            "applied in the order of the text",
            "symbol, pair = heappop(waiting)",
            "symbol, pair = waiting.pop(0)",
            "test_a_word_is_merged_in_the_order_of_learning",
        ),
    ),
    *_bugs(
        "tokenizers/bpe.py",
        "test_bpe.py",
        (
            "half characters end the decoding",
            '.decode("utf-8", "replace")',
            '.decode("utf-8")',
            "test_half_a_character_is_decoded_to_a_replacement",
        ),
        (
            "half characters vanish",
            '.decode("utf-8", "replace")',
            '.decode("utf-8", "ignore")',
            "test_half_a_character_is_decoded_to_a_replacement",
        ),
        (
            "bytes in their own order",
            "_BYTES = bytes(_PRINTABLE + [byte for byte in range(256) if byte not in _PRINTABLE])",
            "_BYTES = bytes(range(256))",
            "test_ids_by_hand",
        ),
        (
            "half a surrogate pair taken for a byte",
            "return self._ids(_whole(text))",
            "return self._ids(text)",
            "test_half_a_character_is_refused_even_after_bytes_that_look_like_it",
        ),
    ),
    *_bugs(
        "data/translation.py",
        "test_batching.py",
        (
            "target not shifted",
            "[[*ids, tgt_tokenizer.eos_id] for ids in targets]",
            "[[tgt_tokenizer.bos_id, *ids] for ids in targets]",
            "test_a_batch_by_hand",
        ),
        (
            "padding in front",
            "row[: len(sequence)] = sequence",
            "row[width - len(sequence) :] = sequence",
            "test_pad_keeps_the_ids_and_fills_up_at_the_end",
        ),
        (
            "the same order each epoch",
            "in self._epoch(rng)[:left]",
            "in self._epoch(np.random.default_rng(self.seed))[:left]",
            "test_steps_go_through_epochs_each_in_a_new_order",
        ),
        (
            "last batch dropped",
            "range(0, len(rows), self.batch_size)",
            "range(0, len(rows) - self.batch_size + 1, self.batch_size)",
            "test_one_epoch_has_every_pair_once",
        ),
    ),
    *_bugs(
        "evaluation/metrics.py",
        "test_metrics.py",
        (
            "words too many are free",
            "sum(max(len(p), len(r)) for p, r in rows)",
            "sum(len(r) for p, r in rows)",
            "test_exact_match_and_token_accuracy_by_hand",
        ),
        (
            "perplexity of bits",
            "math.exp(mean_nats)",
            "2.0**mean_nats",
            "test_perplexity_of_a_uniform_choice_is_the_number_of_choices",
        ),
        (
            "predictions and references swapped",
            "corpus_score(list(predictions), [list(references)]",
            "corpus_score(list(references), [list(predictions)]",
            "test_corpus_bleu_by_hand",
        ),
    ),
]

CORPORA = [
    *_bugs(
        "corpora/algorithmic.py",
        "test_corpora_algorithmic.py",
        (
            "distance counted from the start",
            "asked = n_pairs - 1 - back",
            "asked = back",
            "test_recall_asks_at_the_distance_wanted",
        ),
    ),
    *_bugs(
        "corpora/english_italian/grammar.py",
        "test_corpora_english_italian.py",
        (
            "adjective before the noun",
            "[*translated, adjective.italian(noun.gender, plural=plural)]",
            "[adjective.italian(noun.gender, plural=plural), *translated]",
            "test_sentence_is_translated_as_by_hand",
        ),
        (
            "'it' is always the subject",
            "if self.object is None or self.adjective.kind == self.subject.noun.kind:",
            "if True:",
            "test_pronoun_facts_by_hand",
        ),
        (
            "links not moved along",
            "(i + len(source), j + len(target))",
            "(i, j)",
            "test_alignment_by_hand",
        ),
    ),
    *_bugs(
        "corpora/english_italian/sampling.py",
        "test_corpora_english_italian.py",
        (
            "held-out combinations in training",
            "accept=lambda tree: not is_held_out(tree)",
            "accept=lambda tree: True",
            "test_every_test_sentence_has_a_combination_that_training_never_has",
        ),
    ),
]

FILES = [
    *_bugs(
        "storage/files.py",
        "test_checkpoint.py",
        ("a link becomes a file", ".resolve()", "", "test_a_link_stays_a_link_and_a_pipe_a_pipe"),
        (
            "a pipe becomes a file",
            " or not (mode is None or stat.S_ISREG(mode))",
            "",
            "test_a_link_stays_a_link_and_a_pipe_a_pipe",
        ),
        (
            "the standard output is replaced",
            "path.absolute().parent in _STREAMS or ",
            "",
            "test_the_standard_output_is_written_to",
        ),
    ),
    *_bugs(
        "evaluation/flops.py",
        "test_counters.py",
        ("a shared table is counted twice", " * (not c.share_embeddings)", "", "test_whole_model"),
        ("gains of queries and keys are forgotten", " * d + gains,", " * d,", "test_whole_model"),
    ),
    *_bugs(
        "cli/commands.py",
        "test_cli.py",
        (
            "scored before all are known",
            "in [prepare(name) for name in names]:",
            "in (prepare(name) for name in names):",
            "test_scoring_begins_when_all_can_be_scored",
        ),
        (
            "byte pairs take the place of the text",
            "if out.is_file() and out.samefile(name):",
            "if False:",
            "test_what_is_learned_from_is_not_replaced",
        ),
        (
            "a place that can't be written is found after the work",
            '    check_place(asked.out, what="the tokenizer")  # learning takes minutes\n',
            "",
            "test_a_place_is_looked_at_before_the_work",
        ),
        (
            "scores of other models are lost",
            "json.dumps(others + found, ",
            "json.dumps(found, ",
            "test_scores_of_other_models_stay",
        ),
        (
            "without names nothing stays",
            "[] if asked.json is None else _scores",
            "[] if asked.json is None or not asked.models else _scores",
            "test_scores_of_other_models_stay",
        ),
        (
            "a mark at the start is taken for text",
            '"utf-8-sig" if number == 1 else "utf-8"',
            '"utf-8"',
            "test_a_byte_order_mark_is_no_part_of_the_text",
        ),
    ),
    *_bugs(
        "corpora/real/download.py",
        "test_corpora_real.py",
        (
            "two processes write one part",
            'with FileLock(path.with_name(f"{path.name}.lock")):',
            "if True:",
            "test_who_comes_second_waits",
        ),
        (
            "who waited fetches it again",
            "        if not path.is_file() or _hash(path) != file.sha256:",
            "        if True:",
            "test_who_comes_second_waits",
        ),
        (
            "a cut download begins anew",
            '"ab" if have else "wb"',
            '"wb"',
            "test_a_cut_download_goes_on_where_it_stopped",
        ),
        (
            "what comes is not checked",
            "    if _hash(part) != file.sha256:\n",
            "    if False:\n",
            "test_other_bytes_are_refused_and_not_kept",
        ),
        (
            "the cache is believed",
            "path.is_file() and _hash(path) == file.sha256",
            "path.is_file()",
            "test_a_poisoned_cache_is_fetched_anew",
        ),
    ),
    *_bugs(
        "training/checkpoint.py",
        "test_checkpoint.py",
        (
            "PyTorch's random numbers are not put back",
            'torch.set_rng_state(tensors["random.torch"])',
            "pass",
            "test_a_run_goes_on_as_if_never_cut",
        ),
        ("the newest go", "[:-keep]", "[keep:]", "test_the_oldest_go"),
        (
            "the last checkpoint instead of the mean",
            ".mean(dim=0)",
            "[-1]",
            "test_the_mean_of_checkpoints",
        ),
    ),
    *_bugs(
        "storage/files.py",
        "test_checkpoint.py",
        (
            "half a file is left behind",
            "part.unlink(missing_ok=True)",
            "pass",
            "test_a_full_disk_leaves_what_was_there",
        ),
    ),
]

MASKED_LM = [
    *_bugs(
        "data/masking.py",
        "test_masked_lm.py",
        ("a short text gives no word", ".clamp(min=1)", "", "test_how_many_words_of_each_text"),
        (
            "special symbols hidden",
            "return may & (order",
            "return (order",
            "test_a_text_without_words_gives_none",
        ),
        (
            "the same words chosen each time",
            ".masked_fill(~may, 2.0)",
            " * 0 + ~may",
            "test_every_word_is_chosen_equally_often",
        ),
        (
            "no word is kept as it is",
            "chance < config.masked + config.random)",
            "chance < 1.0)",
            "test_eighty_ten_ten",
        ),
        (
            "targets everywhere",
            "ids.masked_fill(~chosen, config.pad_id)",
            "ids",
            "test_how_many_words_of_each_text",
        ),
        (
            "targets are what is shown",
            "MaskedBatch(inputs, ids.masked",
            "MaskedBatch(inputs, inputs.masked",
            "test_eighty_ten_ten",
        ),
    ),
    Bug(
        "an adjective without the number of its noun",
        "corpora/english/labels.py",
        "            number = above",
        '            number = "none"',
        "test_corpora_english_labels.py::test_the_and_adjectives_have_the_number_of_the_next_noun",
    ),
    Bug(
        "a falsified sentence hides what was drawn",
        "corpora/english/labels.py",
        'JudgedSentence(" ".join(words), right, drawn)',
        'JudgedSentence(" ".join(words), right, " ".join(words))',
        "test_corpora_english_labels.py::test_a_sentence_is_told_as_it_was_drawn",
    ),
    Bug(
        "the class of the last noun phrase",
        "corpora/english/labels.py",
        'if name == "NP" and not subject:',
        'if name == "NP":',
        "test_corpora_english_labels.py::test_the_kind_is_that_of_the_first_noun",
    ),
    Bug(
        "a word that comes takes no room",
        "corpora/english/language.py",
        "left = room - (word != prefixes.END)",
        "left = room",
        "test_corpora_english.py::test_the_next_word_where_long_sentences_are_left_out",
    ),
    Bug(
        "a hidden word by its left side alone",
        "corpora/english/hidden.py",
        "found[word] = rest[()]",
        "found[word] = sum(prefixes.advance(GRAMMAR, stacks, word).values())",
        "test_corpora_english_labels.py::test_a_hidden_word_by_the_probabilities_of_whole_sentences",
    ),
]

NEWS = [
    *_bugs(
        "corpora/news/checking.py",
        "test_corpora_news.py",
        (
            "any word of the article will do",
            'f" {words} " in article',
            "all(word in article for word in words.split())",
            "test_verdicts_by_hand",
        ),
    ),
    *_bugs(
        "corpora/news/sampling.py",
        "test_corpora_news.py",
        (
            "test articles are training articles with other names",
            "Random(2 * seed + held_out)",
            "Random(seed)",
            "test_seeds_and_repeats",
        ),
    ),
    *_bugs(
        "evaluation/metrics.py",
        "test_metrics.py",
        (
            "words by their stems",
            "RougeScorer(names)",
            "RougeScorer(names, use_stemmer=True)",
            "test_rouge_takes_the_words_as_they_are",
        ),
        ("recall for F", "scores[name].fmeasure", "scores[name].recall", "test_rouge_by_hand"),
    ),
]

SWITCHES = [
    *_bugs(
        "nn/normalization.py",
        "test_normalization.py",
        (
            "ε outside the root of the mean square",
            "torch.sqrt(mean_square + eps)",
            "(mean_square.sqrt() + eps)",
            "test_rms_norm_by_hand",
        ),
        (
            "the mean is taken away from RMSNorm too",
            "mean_square = (x**2)",
            "mean_square = ((x - x.mean(-1, True)) ** 2)",
            "test_rms_norm_by_hand",
        ),
        ("sum of squares for their mean", "(x**2).mean(", "(x**2).sum(", "test_rms_norm_by_hand"),
        (
            "RMSNorm without its own ε",
            "F.rms_norm(x, self.gain.shape, self.gain.to(x), self.eps)",
            "F.rms_norm(x, self.gain.shape, self.gain.to(x))",
            "test_rms_norm_by_hand",
        ),
        (
            "RMSNorm without its gain",
            "F.rms_norm(x, self.gain.shape, self.gain.to(x), self.eps)",
            "F.rms_norm(x, self.gain.shape, None, self.eps)",
            "test_rms_norm_by_hand",
        ),
    ),
    *_bugs(
        "nn/feedforward.py",
        "test_feedforward.py",
        (
            "the square of what is negative too",
            "F.relu(x).square()",
            "x.square()",
            "test_squared_relu_by_hand",
        ),
        ("relu without the square", "F.relu(x).square()", "F.relu(x)", "test_squared_relu_by_hand"),
    ),
    *_bugs(
        "nn/qk_norm.py",
        "test_qk_norm.py",
        ("keys are not normalized", "self.norm_q(q), self.norm_k(k)", "self.norm_q(q), k", "test_by_hand"),
        ("one gain for queries and keys", "self.norm_k(k)\n", "self.norm_q(k)\n", "test_attention_is_qwen3s"),
        (
            "rotation before the normalization",
            "q, k = self.norm_q(q), self.norm_k(k)\n"
            "        return (q, k, None) if self.positions is None else self.positions(q, k)",
            "q, k, bias = (q, k, None) if self.positions is None else self.positions(q, k)\n"
            "        return self.norm_q(q), self.norm_k(k), bias",
            "test_attention_is_qwen3s",
        ),
        (
            "positions are lost",
            "positions=part.positions)",
            "positions=None)",
            "test_heads_are_normalized_once",
        ),
        (
            "all heads together are normalized",
            "QKNorm(part.w_q.out_features // part.n_heads,",
            "QKNorm(part.w_q.out_features,",
            "test_cached_translations_are_those_without_a_cache",
        ),
    ),
    *_bugs(
        "nn/cache.py",
        "test_qk_norm.py",
        (
            "the cache forgets what acts on queries and keys",
            "if attention.positions is not None:",
            "if False:",
            "test_cached_scores_are_those_without_a_cache",
        ),
    ),
    *_bugs(
        "nn/initialization.py",
        "test_initialization.py",
        (
            "the first matrix for the last",
            'FeedForward: "w_2"',
            'FeedForward: "w_1"',
            "test_only_the_last_matrices_are_zero",
        ),
        (
            "values for outputs",
            'MultiHeadAttention: "w_o"',
            'MultiHeadAttention: "w_v"',
            "test_only_the_last_matrices_are_zero",
        ),
        (
            "the bias is left",
            "getattr(part, last).parameters()",
            "[getattr(part, last).weight]",
            "test_a_layer_begins_as_the_identity",
        ),
    ),
    *_bugs(
        "models/config.py",
        "test_initialization.py",
        (
            "layers start at zero unasked",
            "if config.zero_init:",
            "if True:",
            "test_only_the_last_matrices_are_zero",
        ),
        (
            "only the first stack is switched",
            "for stack in stacks:",
            "for stack in stacks[:1]:",
            "test_qk_norm.py::test_every_attention_of_a_translator_is_normalized",
        ),
        (
            "a size of 0 is let through",
            "and value < 1",
            "and value < 0",
            "test_decoder_lm.py::test_refusals",
        ),
        (
            "limit off by one",
            "if n > max_len:",
            "if n > max_len + 1:",
            "test_decoder_lm.py::test_refusals",
        ),
        (
            "padding outside the vocabulary",
            "< smallest:",
            "< smallest + 1:",
            "test_encoder_decoder.py::test_configurations_that_make_no_model_are_refused",
        ),
    ),
]

RECIPES = [
    *_bugs(
        "training/schedules.py",
        "test_recipes.py",
        ("the root turned over", "sqrt(warmup / step)", "sqrt(step / warmup)", "test_root_schedule_by_hand"),
        ("a whole wave", "math.cos(math.pi *", "math.cos(2 * math.pi *", "test_cosine_schedule_by_hand"),
        ("down to nothing", "(floor + (1 - floor) * wave)", "wave", "test_cosine_schedule_by_hand"),
    ),
    *_bugs(
        "training/optimizers.py",
        "test_optimizers.py",
        (
            "gains and biases decay too",
            '"weight_decay": 0.0}',
            '"weight_decay": weight_decay}',
            "test_one_step_of_adamw_by_hand",
        ),
        (
            "Muon moves the tables too",
            "[part for part in model.children() if isinstance(part, nn.ModuleList)]",
            "model.children()",
            "test_matrices_inside_the_layers",
        ),
        (
            "Muon gets the vectors of the layers",
            " for p in stack.parameters() if p.ndim == 2}",
            " for p in stack.parameters()}",
            "test_matrices_inside_the_layers",
        ),
    ),
    *_bugs(
        "storage/state_dict.py",
        "test_checkpoint.py",
        (
            "new weights stand beside an old card",
            "        card_path.resolve().unlink(missing_ok=True)  # a link stays a link\n",
            "",
            "test_new_weights_never_stand_beside_an_old_card",
        ),
        (
            "numbers too large for half precision become infinite",
            "if not own.to(dtype).isfinite().all():",
            "if False:",
            "test_weights_in_half_the_bytes",
        ),
        (
            "whole numbers are rounded to half precision",
            "    if not own.is_floating_point():\n        return own\n",
            "",
            "test_weights_in_half_the_bytes",
        ),
    ),
    *_bugs(
        "training/checkpoint.py",
        "test_checkpoint.py",
        (
            "the mean of whole numbers is rounded to half precision",
            "dtype if dtype and first.is_floating_point() else",
            "dtype if dtype else",
            "test_a_mean_in_half_precision",
        ),
    ),
    *_bugs(
        "generation/translate.py",
        "test_generation.py",
        (
            "many translations come back by length",
            "out[row] = text",
            "out[start + rows.index(row)] = text",
            "test_many_sentences_come_back_in_their_order",
        ),
    ),
    *_bugs(
        "hub/pretrained.py",
        "test_pretrained.py",
        (
            "tokenizers come after the card",
            "        for name, tokenizer in tokenizers.items():\n            tokenizer.save(",
            "        pass\n    for name, tokenizer in tokenizers.items():\n        tokenizer.save(",
            "test_a_save_that_is_cut_leaves_no_model",
        ),
        (
            "the card is away before the save is refused",
            "    _check_sizes(tokenizers, model.config, where=f",
            "    Path(folder, 'model.json').unlink(True)\n    _check_sizes(tokenizers, model.config, where=f",
            "test_a_save_that_is_refused_leaves_the_folder_as_it_was",
        ),
        (
            "a card from elsewhere says what the model is",
            "{**own, **card, **own}",
            "{**own, **card}",
            "test_a_card_does_not_change_the_model",
        ),
        (
            "a tokenizer of another model is saved",
            '    _check_sizes(tokenizers, model.config, where=f"the {kind} to save")\n',
            "",
            "test_a_save_that_is_refused_leaves_the_folder_as_it_was",
        ),
        (
            "a shipped model hides a folder of its name",
            "    if not folder.is_dir():\n        folder = shipped",
            "    if str(name_or_folder) in shipped_models():\n        folder = shipped",
            "test_a_name_is_a_model_that_is_shipped",
        ),
        (
            "the longest text may fill the memory",
            '_MOST = {"max_len": 2**17}',
            "_MOST: dict[str, int] = {}",
            "test_cards_that_lie",
        ),
    ),
    *_bugs(
        "recipes/judge.py",
        "test_recipe_runs.py",
        (
            "the seed of teachers is not told",
            "recipe.seed_of_teachers} if",
            "recipe.seed} if",
            "test_teachers.py::test_a_further_seed_with_the_same_teachers",
        ),
        (
            "the test set is never looked at",
            '("val", "test")',
            '("val",)',
            "test_a_model_is_judged_from_its_weights_alone",
        ),
        (
            "a new model is judged",
            "replace(task, model=found.model, ",
            "replace(task, ",
            "test_a_model_is_judged_from_its_weights_alone",
        ),
        (
            "the recipe's sizes are judged",
            "return replace(recipe, model=own)",
            "return recipe",
            "test_the_loaded_model_is_judged_whatever_its_recipe_makes",
        ),
    ),
    *_bugs(
        "recipes/recipe.py",
        "test_recipes.py",
        (
            "a rate that is no number passes",
            "if not 0 <= value < math.inf:",
            "if value < 0 or value == math.inf:",
            "test_recipes_that_no_run_can_follow",
        ),
    ),
    *_bugs(
        "recipes/recipe_optimizers.py",
        "test_recipes.py",
        (
            "Muon's momentum is forgotten",
            '"momentum": recipe.momentum, ',
            "",
            "test_momentum_and_decay_reach_muon",
        ),
        (
            "all parts have one rate",
            "recipe.rate(peak)",
            "recipe.rate(recipe.lr)",
            "test_parts_of_a_model_have_their_own_rates",
        ),
        (
            "a part with its own rate is moved twice",
            'if own.get(id(p), "") == name]',
            'if name in ("", own.get(id(p)))]',
            "test_parts_of_a_model_have_their_own_rates",
        ),
    ),
    *_bugs(
        "recipes/finish.py",
        "test_recipe_runs.py",
        (
            "mean of the first checkpoints",
            "find_checkpoints(place.checkpoints)[-recipe.average :]",
            "find_checkpoints(place.checkpoints)[:1]",
            "test_the_model_is_the_mean_of_the_last_checkpoints",
        ),
        (
            "the time of teachers forgotten",
            "sum(each[clock] for each in times.values())",
            "times[recipe.name][clock]",
            "test_teachers.py::test_a_run_with_teachers",
        ),
    ),
    *_bugs(
        "recipes/distillation.py",
        "test_teachers.py",
        (
            "a teacher that can't be had is found after hours",
            "if find_recipe(name).teachers:",
            "if False:",
            "test_mistakes",
        ),
        (
            "one teacher is asked twice",
            "if len(set(recipe.teachers)) < len(recipe.teachers):",
            "if False:",
            "test_mistakes",
        ),
        (
            "answers that are no texts",
            "all(isinstance(text, str) for text in texts)",
            "True",
            "test_mistakes",
        ),
        (
            "answers without their time",
            "all(isinstance(each, int | float) and 0 <= each < math.inf for each in times)",
            "True",
            "test_mistakes",
        ),
        (
            "texts in place of their translations",
            "**{side: getattr(pair, side), other: text}",
            "**{other: getattr(pair, other), side: text}",
            "test_answers_stand_with_what_they_translate",
        ),
        (
            "a beam that lost its way is learned from",
            "text.strip() and len(tokenizer.encode(text)) <= most",
            "text.strip()",
            "test_answers_stand_with_what_they_translate",
        ),
        (
            "nothing is learned as a translation",
            "if text.strip() and len",
            "if len",
            "test_answers_stand_with_what_they_translate",
        ),
        (
            "length of the text, not of its translation",
            "tokenizer.encode(getattr(pair, other))",
            "tokenizer.encode(getattr(pair, side))",
            "test_answers_stand_with_what_they_translate",
        ),
        (
            "in place of the pairs of people",
            "train, hashes = list(data.train), dict(data.hashes)",
            "train, hashes = [], dict(data.hashes)",
            "test_answers_stand_with_what_they_translate",
        ),
        (
            "all is asked again after a cut",
            'range(len(found["texts"]), len(texts), _AT_ONCE)',
            "range(0, len(texts), _AT_ONCE)",
            "test_a_run_that_was_cut_asks_only_for_what_is_missing",
        ),
        (
            "any texts of the same kind will do",
            "if texts == [getattr(pair, side) for pair in data.train]:",
            'if side == "source":',
            "test_each_teacher_reads_its_own_language",
        ),
    ),
    *_bugs(
        "recipes/run_folder.py",
        "test_recipe_runs.py",
        ("two runs in one folder", "lock.acquire()", "pass", "test_one_process_at_a_time"),
        (
            "what is left of another run is used",
            "        elif any(path.exists()",
            "        elif False and any(path.exists()",
            "test_parts_of_a_run_without_its_recipe_are_not_used",
        ),
        (
            "a run goes on with other data",
            "elif known[name] != found:",
            "elif False:",
            "test_a_run_goes_on_with_what_it_began_with",
        ),
        (
            "a run from before a setting is taken for another",
            "defaults | read_json(self.recipe)",
            "read_json(self.recipe)",
            "test_a_run_that_is_older_than_a_setting_goes_on",
        ),
        (
            "who comes second to a teacher is refused",
            "timeout=-1 if wait else 0",
            "timeout=0",
            "test_teachers.py::test_a_teacher_that_another_process_trains_is_waited_for",
        ),
        ("a line in half stays", "return math.inf", "return 0.0", "test_a_log_that_lost_lines_is_mended"),
        (
            "lines are counted, not read",
            "[line for line in lines if _step(line) <= done]",
            "lines[:done]",
            "test_a_log_that_lost_lines_is_mended",
        ),
    ),
    *_bugs(
        "recipes/run.py",
        "test_teachers.py",
        (
            "a teacher computes in its own precision",
            '"precision": recipe.precision}',
            '"precision": "no"}',
            "test_teachers_compute_as_the_learner_does",
        ),
        (
            "all seeds have one teacher",
            '"seed": recipe.seed_of_teachers',
            '"seed": 0',
            "test_a_run_with_teachers",
        ),
        (
            "the seed of teachers is forgotten",
            '"seed": recipe.seed_of_teachers',
            '"seed": recipe.seed',
            "test_a_further_seed_with_the_same_teachers",
        ),
        (
            "what no run can follow is found after the teachers",
            "    make_optimizers(recipe, make_task(",
            "    recipe or make_optimizers(recipe, make_task(",
            "test_what_is_known_at_once_is_refused_before_the_teachers",
        ),
        (
            "the answers are not learned",
            "return add_answers(data, answers, tokenizer=tokenizer), spent",
            "return data, spent",
            "test_answers_are_learned",
        ),
    ),
    *_bugs(
        "recipes/run.py",
        "test_recipe_runs.py",
        (
            "one checkpoint too few is kept",
            "keep=recipe.average",
            "keep=max(1, recipe.average - 1)",
            "test_the_model_is_the_mean_of_the_last_checkpoints",
        ),
        (
            "a step is read twice after a cut",
            "done=done, accumulate",
            "done=max(0, done - 1), accumulate",
            "test_a_run_that_was_cut_goes_on",
        ),
        (
            "chance begins anew after a cut",
            "enumerate(parts, start=done + 1)",
            "enumerate(parts, start=1)",
            "test_a_run_that_was_cut_goes_on",
        ),
        ("the rates begin anew after a cut", "first=done + 1", "first=1", "test_a_run_that_was_cut_goes_on"),
        (
            "the clock begins anew after a cut",
            "Clock(notes)",
            "Clock({})",
            "test_time_goes_on_where_a_run_was_cut",
        ),
        (
            "steps that are done again stand twice in the log",
            "place.cut_log(done=done)",
            "pass",
            "test_a_run_that_was_cut_goes_on",
        ),
        (
            "a run that has ended goes on",
            'notes.get("ended")',
            "False",
            "test_time_goes_on_where_a_run_was_cut",
        ),
    ),
    *_bugs(
        "training/loop.py",
        "test_recipe_runs.py",
        (
            "the mean over processes where the sum is due",
            "loss * accelerator.num_processes",
            "loss",
            "test_two_processes_are_one",
        ),
        (
            "the loss of one process alone",
            'accelerator.reduce(total, "sum")',
            "total",
            "test_two_processes_are_one",
        ),
    ),
    *_bugs(
        "data/sampler.py",
        "test_recipe_runs.py",
        (
            "each process normalizes by its own tokens, in a run",
            "share = source.n_targets(own) / whole",
            "share = (1 / n_parts)",
            "test_two_processes_are_one",
        ),
    ),
    *_bugs(
        "recipes/task.py",
        "test_recipe_runs.py",
        (
            "training texts are not all learned from",
            "for text in (pair.source, pair.target)]",
            "for text in (pair.source,)]",
            "test_the_folder_says_how_it_was_done",
        ),
        (
            "one way twice in place of both ways",
            "turned = [(target, source) for",
            "turned = [(source, target) for",
            "test_both_ways_are_one_run",
        ),
        (
            "both ways learned, one way measured",
            "if recipe.both_ways else part",
            "if recipe.both_ways and part is data.train else part",
            "test_both_ways_are_one_run",
        ),
    ),
    *_bugs(
        "recipes/scores.py",
        "test_recipe_runs.py",
        (
            "the recipe's alpha is forgotten",
            '"alpha": recipe.alpha, ',
            "",
            "test_translations_are_judged_as_the_recipe_says",
        ),
    ),
    *_bugs(
        "nn/positions/rotary.py",
        "test_rotary.py",
        (
            "a traced tensor is kept for all",
            "_first_turns if type(k) is Tensor else _first_turns.__wrapped__",
            "_first_turns",
            "test_an_export_leaves_the_model_as_it_was",
        ),
        (
            "turns go the other way",
            "torch.polar(torch.ones_like(angle), angle)",
            "torch.polar(torch.ones_like(angle), -angle)",
            "test_each_pair_is_turned_by_a_matrix",
        ),
        (
            "vectors must lie in memory as pairs do",
            "x.to(wide, copy=True, memory_format=torch.contiguous_format)",
            "x.to(wide)",
            "test_however_the_vectors_lie_in_memory",
        ),
        (
            "queries start at position 0",
            "turns[len(key) - len(query) :]",
            "turns[: len(query)]",
            "test_kept_turns_are_those_of_rotate",
        ),
        (
            "a base finds another's turns",
            "d_head=d_head, base=base)\n    return turns.to(",
            "d_head=d_head, base=10_000.0)\n    return turns.to(",
            "test_kept_turns_are_those_of_rotate",
        ),
        (
            "turns that inference made cannot be used in training",
            "@torch.inference_mode(mode=False)",
            "",
            "test_training_goes_on_after_inference",
        ),
    ),
    *_bugs(
        "lessons/figures.py",
        "test_plotting.py",
        (
            "names are spread on a scale that is not known yet",
            "ax.autoscale_view()",
            "ax.margins()",
            "test_names_of_close_ends_do_not_overlap_whatever_the_scale",
        ),
        (
            "the name of a line that diverged stands nowhere",
            "np.isfinite(points) & ",
            "",
            "test_the_name_of_a_line_that_diverges_stands_at_its_last_finite_point",
        ),
        (
            "a stroke aims at the middle of its name",
            '"relpos": (0, 0.5)',
            '"relpos": (0.5, 0.5)',
            "test_the_stroke_of_a_name_is_like_its_line_and_ends_before_its_middle",
        ),
        (
            "a stroke is solid whatever the line is",
            '"linestyle": line.get_linestyle()',
            '"linestyle": "-"',
            "test_the_stroke_of_a_name_is_like_its_line_and_ends_before_its_middle",
        ),
    ),
    *_bugs(
        "training/muon.py",
        "test_muon.py",
        (
            "a tall matrix is bent from its long side",
            "matrices.mT if tall else matrices",
            "matrices",
            "test_only_the_singular_values_change",
        ),
        (
            "all matrices of a shape share a length",
            "x.flatten(start_dim=1).norm(dim=1).clamp(min=_TINY)[:, None, None]",
            "x.norm().clamp(min=_TINY)",
            "test_only_the_singular_values_change",
        ),
        (
            "the new slope is forgotten",
            "return slope.lerp(mean, momentum)",
            "return mean.clone()",
            "test_two_steps_by_hand",
        ),
        (
            "tall matrices go no farther than wide ones",
            "max(1.0, ahead.size(1) / ahead.size(2))",
            "max(1.0, ahead.size(2) / ahead.size(1))",
            "test_two_steps_by_hand",
        ),
        (
            "weights decay whatever the rate is",
            '1 - group["lr"] * group["weight_decay"]',
            '1 - group["weight_decay"]',
            "test_pytorchs_own_takes_the_same_steps",
        ),
    ),
    *_bugs(
        "recipes/memory.py",
        "test_recipe_runs.py",
        (
            "large tensors go back to the system",
            "libc.mallopt(_TRIM_THRESHOLD, _NEVER)",
            "pass",
            "test_the_end_of_memory_is_kept_too",
        ),
        (
            "large tensors have pages of their own",
            "libc.mallopt(_MMAP_MAX, 0)",
            "pass",
            "test_freed_memory_is_kept",
        ),
    ),
]

FAST = _bugs(
    "nn/fast_attention.py",
    "test_fast_attention.py",
    (
        "any square mask is taken for causal",
        "return torch.equal(mask[0, 0], causal_mask(k.size(-2)))",
        "return True",
        "test_equal_to_the_explicit_path",
    ),
    (
        "one True for all is taken for causal",
        "causal_mask(k.size(-2)))",
        "causal_mask(mask.size(-1)))",
        "test_equal_to_the_explicit_path",
    ),
    (
        "a score and the lowest number together are no number",
        "torch.finfo(v.dtype).min / 2",
        "torch.finfo(v.dtype).min",
        "test_large_scores_beside_what_is_hidden_stay_numbers",
    ),
    (
        "causal, and the bias is lost",
        "bias is None and _is_causal",
        "_is_causal",
        "test_equal_to_the_explicit_path",
    ),
    (
        "-inf where nothing is added",
        "~mask, -torch.inf",
        "mask, -torch.inf",
        "test_equal_to_the_explicit_path",
    ),
    (
        "scale missing in half precision",
        "alpha=1 / math.sqrt(q.size(-1))",
        "alpha=1",
        "test_half_precision_is_near_to_the_explicit_path",
    ),
    (
        "empty row attends to everything in half precision",
        "if mask is not None and not mask.any(dim=-1).all():",
        "if False:",
        "test_half_precision_is_near_to_the_explicit_path",
    ),
    (
        "no bias in half precision",
        " if bias is None else bias[None].to(v)",
        "",
        "test_half_precision_is_near_to_the_explicit_path",
    ),
    ("no dropout in half precision", "F.dropout(weights, dropout)", "weights", "test_dropout_drops_weights"),
    (
        "half precision goes back through the kernel",
        "v.dtype == torch.bfloat16 and",
        "False and",
        "test_which_way_is_taken",
    ),
    (
        "float16 is computed with its own numbers",
        "v.dtype == torch.bfloat16 and",
        "v.dtype in (torch.bfloat16, torch.float16) and",
        "test_scores_too_large_for_float16",
    ),
)

LESSON = _bugs(
    "lessons/claims.py",
    "test_lesson.py",
    (
        "a number under its bound is told as the bound",
        'or more" if value >= bound',
        'or more" if value == value',
        "test_a_number_outside_its_bound_is_told_itself",
    ),
    (
        "a bound the wrong way round",
        "if value <= bound",
        "if value >= bound",
        "test_a_number_within_its_bound_is_told_as_the_bound",
    ),
    (
        "a bound is rounded",
        "if not math.isclose(number, bound):",
        "if False:",
        "test_a_bound_that_is_told_rounded_is_refused",
    ),
)

BUGS = [
    *ATTENTION,
    *MULTI_HEAD,
    *MASKS,
    *NORMALIZATION,
    *EMBEDDING,
    *POSITIONAL,
    *SIMPLE_POSITIONS,
    *DROPOUT,
    *FEED_FORWARD,
    *LAYERS,
    *MODEL,
    *DECODER_LM,
    *ENCODER_LM,
    *MASKED_LM,
    *LOSS,
    *TRAINING,
    *TOKEN_BATCHES,
    *RECIPES,
    *AUTOREGRESSIVE,
    *SAMPLING,
    *BEAM_SEARCH,
    *CACHE,
    *GENERATION,
    *TEXT,
    *CORPORA,
    *FILES,
    *NEWS,
    *SWITCHES,
    *FAST,
    *LESSON,
]
