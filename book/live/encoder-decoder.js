// needs: models
// The translator.
"use strict";
(() => {
  const { Model, embed, addPositions, layer } = exformer;

  class EncoderDecoder extends Model {
    // The memory (src, d_model): a vector for each source token.
    encode(ids, { hooks } = {}) {
      const { p, config } = this;
      this.check(ids, 0, "sentence");
      const embedding = config.share_embeddings ? p.tgt_embedding : p.src_embedding;
      let x = addPositions(p.src_positions, embed(embedding, ids, Math.sqrt(config.d_model)), config, 0);
      for (let i = 0; i < config.n_layers; i++) x = layer(p.encoder[i], x, config, { hooks });
      return this.norm(p.encoder_norm, x);
    }

    // Logits (tgt, vocab) of the token after each target token.
    decode(ids, memory, { cache, hooks } = {}) {
      const { p, config } = this;
      const start = cache?.length ?? 0;
      this.check(ids, start, "translation");
      let x = addPositions(p.tgt_positions, embed(p.tgt_embedding, ids, Math.sqrt(config.d_model)), config, start);
      for (let i = 0; i < config.n_layers; i++)
        x = layer(p.decoder[i], x, config, { causal: true, memory, cache: cache?.layers[i], memoryCache: cache?.memories[i], hooks });
      return this.logitsOf(this.norm(p.decoder_norm, x), p.tgt_embedding.weight);
    }
  }

  exformer.models.EncoderDecoder = EncoderDecoder;
})();
