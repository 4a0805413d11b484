// PyTorch's random numbers on a processor: the Mersenne Twister of Matsumoto and Nishimura 1998.
"use strict";
(() => {
  const [N, M] = [624, 397];

  class Generator {
    constructor(seed) {
      this.state = new Uint32Array(N);
      this.state[0] = Number(BigInt.asUintN(32, BigInt(seed)));
      for (let i = 1; i < N; i++) {
        const before = this.state[i - 1] ^ (this.state[i - 1] >>> 30);
        this.state[i] = Math.imul(1812433253, before) + i;
      }
      this.next = N;
    }

    twist() {
      const s = this.state;
      for (let i = 0; i < N; i++) {
        const y = (s[i] & 0x80000000) | (s[(i + 1) % N] & 0x7fffffff);
        s[i] = s[(i + M) % N] ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
      }
      this.next = 0;
    }

    // 32 random bits.
    bits() {
      if (this.next === N) this.twist();
      let y = this.state[this.next++];
      y ^= y >>> 11;
      y ^= (y << 7) & 0x9d2c5680;
      y ^= (y << 15) & 0xefc60000;
      return (y ^ (y >>> 18)) >>> 0;
    }

    // A number from 0 up to but not including 1, as torch.rand(dtype=torch.float64) gives it.
    uniform() {
      const high = this.bits() % 2 ** 21;
      return (high * 2 ** 32 + this.bits()) / 2 ** 53;
    }
  }

  exformer.generator = (seed) => new Generator(seed);
})();
