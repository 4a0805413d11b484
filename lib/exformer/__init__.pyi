# The public names, package by package in the order of the data: the one list of them, which `__init__.py`,
# type checkers and completion read. A name that is added here is public.
# isort: skip_file

from .tokenizers.characters_and_words import CharTokenizer as CharTokenizer
from .tokenizers.characters_and_words import WordTokenizer as WordTokenizer
from .tokenizers.bpe import BPETokenizer as BPETokenizer

from .data.padding import pad as pad
from .data.translation import TranslationBatches as TranslationBatches
from .data.translation import translation_batches as translation_batches
from .data.windows import TextWindows as TextWindows
from .data.masking import MaskingConfig as MaskingConfig
from .data.masking import mask_tokens as mask_tokens

from .nn.masks import causal_mask as causal_mask
from .nn.masks import padding_mask as padding_mask
from .nn.embedding import TokenEmbedding as TokenEmbedding
from .nn.positions.absolute import sinusoidal_encoding as sinusoidal_encoding
from .nn.positions.rotary import RopeScaling as RopeScaling
from .nn.positions.rotary import rotate as rotate
from .nn.attention import scaled_dot_product_attention as scaled_dot_product_attention
from .nn.record_attention import record_attention as record_attention
from .nn.multi_head import MultiHeadAttention as MultiHeadAttention
from .nn.feedforward import FeedForward as FeedForward
from .nn.mixture_of_experts import MixtureOfExperts as MixtureOfExperts
from .nn.normalization import LayerNorm as LayerNorm
from .nn.normalization import RMSNorm as RMSNorm
from .nn.config import TransformerConfig as TransformerConfig
from .nn.layers import EncoderLayer as EncoderLayer
from .nn.layers import DecoderLayer as DecoderLayer
from .nn.loss import cross_entropy as cross_entropy
from .nn.lora import add_lora as add_lora
from .nn.lora import merge_lora as merge_lora

from .models.encoder_decoder import EncoderDecoder as EncoderDecoder
from .models.encoder_decoder import EncoderDecoderConfig as EncoderDecoderConfig
from .models.decoder_lm import DecoderLM as DecoderLM
from .models.decoder_lm import DecoderLMConfig as DecoderLMConfig
from .models.encoder_lm import EncoderLM as EncoderLM
from .models.encoder_lm import EncoderLMConfig as EncoderLMConfig
from .models.rnn_lm import RecurrentLM as RecurrentLM

from .training.muon import Muon as Muon
from .training.preferences import dpo_loss as dpo_loss
from .training.preferences import group_advantages as group_advantages
from .training.loop import train as train
from .training.config import TrainingConfig as TrainingConfig
from .training.trainer import Trainer as Trainer

from .generation.sampling import Sampling as Sampling
from .generation.beam_search import beam_search as beam_search
from .generation.generate import generate as generate
from .generation.generate import stream as stream
from .generation.translate import translate as translate

from .evaluation.metrics import corpus_bleu as corpus_bleu
from .evaluation.metrics import perplexity as perplexity

from .hub.pretrained import load_model as load_model
from .hub.pretrained import save_model as save_model
from .hub.shipped import shipped_models as shipped_models
from .hub.adapters import save_adapter as save_adapter
from .hub.adapters import load_adapter as load_adapter
from .hub.gguf import from_gguf as from_gguf
from .hub.hugging_face.folder import from_hugging_face as from_hugging_face
from .hub.hugging_face.folder import to_hugging_face as to_hugging_face

__version__: str
