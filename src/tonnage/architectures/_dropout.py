"""The names of dropout fields in configs. No layer's size depends on dropout; the memory kept for backward does."""

# GPT-2, GPT-NeoX and Falcon, BERT, BART, T5, GPT-Neo, StarCoder2 and Seed-OSS
HIDDEN_DROPOUT = (
    "resid_pdrop",
    "hidden_dropout",
    "hidden_dropout_prob",
    "dropout",
    "dropout_rate",
    "resid_dropout",
    "residual_dropout",
)
ATTENTION_DROPOUT = (
    "attn_pdrop",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attention_dropout_prob",
    "attn_dropout",
    "dropout_rate",
)
