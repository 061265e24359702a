#include <algorithm>
#include <array>

#include "configs/suggest.hpp"
#include "layout/text.hpp"

namespace troupe {

namespace {

/// Words that all mean the same key.
struct Synonyms {
  MeantKey meant;
  std::string_view words;  ///< folded, with one blank between two
};

constexpr auto kSynonyms = std::to_array<Synonyms>({
    {{"modules.*", "kind"}, "type model_type arch architecture"},
    {{"modules.*", "hidden"},
     "hidden_size dim d_model n_embd embed_dim hidden_dim model_dim width"},
    {{"modules.*", "layers"}, "num_layers num_hidden_layers n_layers n_layer depth"},
    {{"modules.*", "heads"}, "num_heads num_attention_heads n_heads n_head"},
    {{"modules.*", "kv_heads"}, "num_key_value_heads num_kv_heads n_kv_heads num_query_groups"},
    {{"modules.*", "mlp_hidden"},
     "intermediate_size ffn_hidden_size ffn_hidden ffn_dim mlp_dim mlp_size"},
    {{"modules.*", "vocab"}, "vocab_size padded_vocab_size vocabulary vocabulary_size"},
    {{"modules.*", "context"},
     "seq_len seq_length seqlen max_seq_len max_seq_length sequence_length model_max_length "
     "max_position_embeddings context_length block_size n_ctx"},
    {{"modules.*", "rope_base"}, "rope_theta rotary_base"},
    {{"modules.*", "tied_head"}, "tie_word_embeddings tie_embeddings weight_tying tied_embeddings"},
    {{"modules.*", "norm_epsilon"}, "rms_norm_eps layer_norm_eps norm_eps layernorm_epsilon"},
    {{"modules.*", "image_size"}, "img_size image_resolution input_size"},
    {{"modules.*", "image_resampling"}, "resample interpolation"},
    {{"modules.*", "patch_size"}, "patch patch_dim"},
    {{"modules.*", "feature_layer"}, "vision_feature_layer mm_vision_select_layer select_layer"},
    {{"modules.*", "frozen"}, "freeze requires_grad"},
    {{"modules.*", "recompute"},
     "gradient_checkpointing activation_checkpointing activation_checkpoint recompute_granularity"},
    {{"modules.*.layout", "tp"},
     "tensor_parallel tensor_parallel_size tensor_parallel_degree tensor_model_parallel_size "
     "tp_size"},
    {{"modules.*.layout", "pp"},
     "pipeline_parallel pipeline_parallel_size pipeline_parallel_degree "
     "pipeline_model_parallel_size pp_size"},
    {{"modules.*.layout", "dp"},
     "data_parallel data_parallel_size data_parallel_degree data_parallel_replicate_degree "
     "data_parallel_shard_degree dp_size"},
    {{"modules.*.layout", "cp"},
     "context_parallel context_parallel_size context_parallel_degree cp_size"},
    {{"modules.*.layout", "ep"},
     "expert_parallel expert_parallel_degree expert_model_parallel_size ep_size"},
    {{"modules.*.layout", "sp"}, "sequence_parallel"},
    {{"modules.*", "experts"}, "num_experts num_local_experts n_routed_experts moe_num_experts"},
    {{"modules.*", "experts_per_token"}, "num_experts_per_tok top_k moe_router_topk moe_top_k"},
    {{"modules.*", "expert_hidden"}, "moe_intermediate_size moe_ffn_hidden_size"},
    {{"modules.*", "offload_activations"}, "cpu_offloading activation_offload"},
    {{"data", "packing"}, "pack sample_packing sequence_packing packed_sequence"},
    {{"modules.*.layout", "etp"},
     "expert_tensor_parallel expert_tensor_parallel_size expert_tensor_parallel_degree etp_size"},
    {{"edges.*.*", "from"}, "source src"},
    {{"edges.*.*", "to"}, "target destination dst"},
    {{"edges.*.*.through", ""}, "projector projection connector"},
    {{"run", "steps"},
     "train_iters max_steps num_steps total_steps training_steps iterations iters"},
    {{"run", "epochs"}, "epoch num_epochs num_train_epochs max_epochs n_epochs"},
    {{"run", "evaluate_every"}, "eval_interval eval_steps eval_every evaluation_interval"},
    {{"run", "precision"}, "dtype torch_dtype mixed_precision bf16 fp16 amp"},
    {{"run", "dir"}, "output_dir save_dir out_dir dump_folder"},
    {{"run", "seed"}, "random_seed"},
    {{"cluster", "ranks"}, "world_size num_gpus gpus num_devices"},
    {{"cluster", "nodes"}, "nnodes num_nodes"},
    {{"cluster", "backend"}, "device accelerator"},
    {{"cluster", "join"}, "master_addr master_address rdzv_endpoint"},
    {{"schedule", "microbatches"},
     "gradient_accumulation gradient_accumulation_steps grad_accum grad_accum_steps "
     "accumulate_grad_batches num_microbatches n_microbatches"},
    {{"schedule", "global_batch"},
     "global_batch_size train_batch_size total_batch_size effective_batch_size"},
    {{"schedule", "micro_batch_size"},
     "batch_size microbatch_size micro_batch micro_batchsize mbs local_batch_size "
     "per_device_train_batch_size train_micro_batch_size_per_gpu "
     "pipeline_parallel_microbatch_size"},
    {{"schedule", "global_batch"}, "batch_size"},
    {{"schedule", "kind"}, "pipeline_schedule pipeline_parallel_schedule"},
    {{"schedule", "chunks"}, "virtual_pipeline_model_parallel_size num_virtual_stages"},
    {{"optimizer", "learning_rate"}, "lr max_lr peak_lr base_lr"},
    {{"optimizer", "min_learning_rate"}, "min_lr lr_min eta_min"},
    {{"optimizer", "warmup_steps"},
     "warmup warmup_iters lr_warmup_iters lr_warmup_steps num_warmup_steps"},
    {{"optimizer", "warmup_ratio"}, "warmup_fraction lr_warmup_fraction warmup_proportion"},
    {{"optimizer", "schedule"},
     "lr_scheduler lr_scheduler_type lr_decay_style lr_schedule scheduler"},
    {{"optimizer", "betas"}, "beta1 beta2 adam_beta1 adam_beta2 beta_1 beta_2 adam_betas"},
    {{"optimizer", "epsilon"}, "eps adam_eps adam_epsilon"},
    {{"optimizer", "weight_decay"}, "wd"},
    {{"optimizer", "shard"},
     "zero zero_stage zero_optimization distributed_optimizer use_distributed_optimizer zero1"},
    {{"optimizer", "instances"}, "num_distributed_optimizer_instances optimizer_instances"},
    {{"optimizer", "no_decay"}, "no_weight_decay exclude_from_weight_decay"},
    {{"data", "group_by"}, "group_by_modality_length group_by_length"},
    {{"log", "tensorboard"}, "report_to tensorboard_dir logging_dir"},
    {{"log", ""}, "logging logger"},
    {{"optimizer", "clip_norm"},
     "grad_clip clip_grad max_norm max_grad_norm gradient_clipping gradient_clip_val clip"},
    {{"data", "train"}, "train_data train_data_path train_file data_path dataset dataset_path"},
    {{"data", "held_out"},
     "val valid validation val_data valid_data val_file validation_file eval_data test"},
    {{"data", "image_fit"}, "image_aspect_ratio do_pad do_center_crop"},
    {{"modules.*", "image_grids"}, "image_grid_pinpoints grid_pinpoints"},
    {{"data", "tokenizer"}, "tokenizer_path tokenizer_model tokenizer_type"},
    {{"checkpoint", "every"}, "save_interval save_steps save_every"},
    {{"checkpoint", "every_minutes"},
     "minutes save_minutes save_every_minutes interval_minutes checkpoint_minutes"},
    {{"checkpoint", "keep"}, "save_total_limit keep_latest_k keep_last"},
    {{"modules.*", ""}, "models module vision language vision_tower language_model llm encoder"},
    {{"edges.*.*", ""}, "edge"},
    {{"run", ""}, "train training"},
    {{"data", ""}, "dataset datasets"},
    {{"optimizer", ""}, "optim lr_scheduler"},
    {{"checkpoint", ""}, "checkpointing checkpoints"},
    {{"cluster", ""}, "distributed"},
    {{"modules.*.layout", ""}, "parallelism parallel"},
});

/// Keys whose values have another meaning in other programs.
struct Conversion {
  std::string_view words;   ///< as in Synonyms
  std::string_view advice;  ///< a sentence
};

constexpr auto kConversions = std::to_array<Conversion>({
    {"beta1 beta2 adam_beta1 adam_beta2 beta_1 beta_2", "it holds both: betas = [BETA1, BETA2]"},
});

bool HasWord(std::string_view words, const std::string& word) {
  return std::ranges::count(Split(words, ' '), word) > 0;
}

}  // namespace

std::string FoldedKey(std::string_view word) {
  std::string folded = InLowerCase(word);
  std::ranges::replace(folded, '-', '_');
  return folded;
}

std::vector<MeantKey> MeantBy(std::string_view word) {
  std::vector<MeantKey> meant;
  const std::string folded = FoldedKey(word);
  for (const Synonyms& synonyms : kSynonyms) {
    if (HasWord(synonyms.words, folded)) meant.push_back(synonyms.meant);
  }
  return meant;
}

std::string_view AdviceOn(std::string_view word) {
  const std::string folded = FoldedKey(word);
  for (const Conversion& conversion : kConversions) {
    if (HasWord(conversion.words, folded)) return conversion.advice;
  }
  return {};
}

}  // namespace troupe
