// needs: models
// The masked language model.
"use strict";
(() => {
  const { Model, linear, add, normalize, embed, addPositions, layer } = exformer;

  class EncoderLM extends Model {
    // Logits (position, vocab): those of row t are for token t itself, masked or not.
    forward(ids, { segments = ids.map(() => 0), hooks } = {}) {
      const { p, config } = this;
      this.check(ids, 0);
      let x = addPositions(p.positions, embed(p.embedding, ids, 1), config, 0);
      if (config.n_segments) x = add(x, embed(p.segments, segments, 1));
      x = normalize(p.norm_embedding, x, config);
      for (let i = 0; i < config.n_layers; i++) x = layer(p.layers[i], x, config, { hooks });
      const h = linear(p.transform, this.norm(p.norm, x));
      h.data.forEach((each, i) => { h.data[i] = exformer.activation.gelu(each); });
      const output = { weight: p.embedding.weight, bias: p.output_bias };
      return linear(output, normalize(p.norm_output, h, config));
    }
  }

  exformer.models.EncoderLM = EncoderLM;
})();
