// needs: models
// The decoder-only language model: token ids in, logits of the next tokens out.
"use strict";
(() => {
  const { Model, embed, addPositions, layer } = exformer;

  class DecoderLM extends Model {
    // Logits (position, vocab): those of row t are for the token after token t. A cache holds the earlier tokens.
    forward(ids, { cache, hooks } = {}) {
      const { p, config } = this;
      const start = cache?.length ?? 0;
      this.check(ids, start);
      let x = addPositions(p.positions, embed(p.embedding, ids, Math.sqrt(config.d_model)), config, start);
      for (let i = 0; i < config.n_layers; i++)
        x = layer(p.layers[i], x, config, { causal: true, cache: cache?.layers[i], hooks });
      return this.logitsOf(this.norm(p.norm, x), p.embedding.weight);
    }
  }

  exformer.models.DecoderLM = DecoderLM;
})();
