#include "configs/precision_words.hpp"
#include "configs/schema_keys.hpp"

namespace troupe {

/// Returns an unset slot for a key that is read but never printed.
static Slot GlobalBatchSlot(const Target& target) {
  static std::optional<std::int64_t> none;
  return target.inputs == nullptr ? &none : &target.inputs->global_batch;
}

/// Returns the field of a key that is not printed where another key states the value in its place.
static Slot UnlessReplaced(std::int64_t& field, bool replaced, const Target& target) {
  static std::optional<std::int64_t> none;
  return replaced && target.inputs == nullptr ? Slot(&none) : Slot(&field);
}

static Slot StepsSlot(const Target& target) {
  RunConfig& run = target.config->run;
  return UnlessReplaced(run.steps, run.epochs.has_value(), target);
}

static Slot WarmupStepsSlot(const Target& target) {
  OptimizerConfig& optimizer = target.config->optimizer;
  return UnlessReplaced(optimizer.warmup_steps, optimizer.warmup_ratio.has_value(), target);
}

static Slot BetasSlot(const Target& target) {
  return Betas{&target.config->optimizer.beta1, &target.config->optimizer.beta2};
}

static Slot ImageFitSlot(const Target& target) {
  static std::optional<ImageFit> none;
  return target.inputs == nullptr ? &none : &target.inputs->image_fit;
}

std::vector<KeySpec> RunKeys() {  // NOLINT(readability-function-size): a table
  using enum ValueType;
  using enum KeyRole;
  const Words kRowFormats = {"auto", "llava", "webdataset", "parquet"};
  std::vector<KeySpec> keys;
  Add(keys, {""},
      {{"schema", kInteger, Range{1, 1}, "Version of this format."},
       {"extends", kFiles,
        "Files that this one starts from, relative to it, applied in order and key by key; this "
        "file wins. At most 8 deep. Lists replace, `[[edges]]` merge."}});
  Add(keys, {"run"},
      {{"name", &RunConfig::name, kExecution,
        "Beginning of the run directory's name: letters, digits, `.`, `_` and `-`."},
       {"dir", &RunConfig::dir, kExecution,
        "Directory in which the run directory is made. Unlike all other paths it starts at the "
        "working directory, wherever it is written."},
       {"steps", StepsSlot, kInteger, kCount, Unit{"steps"}, kExecution, "Optimizer updates."},
       {"epochs", &RunConfig::epochs, kPositive, Unit{"epochs"}, Otherwise{"from `steps`"},
        kExecution,
        "Passes over the used rows of data.train, in place of `steps`, which follow: epochs * rows "
        "/ global batch, rounded up. It clears inherited `steps`, and they clear it."},
       {"seed", &RunConfig::seed, Range{.low = 0},
        "Decides initial values and the order of samples."},
       {"precision", &RunConfig::precision, kPrecisionWords, Others{"bfloat16", {"bf16"}},
        Others{"float32", {"fp32", "f32", "float", "single"}},
        Others{"float64", {"fp64", "f64", "double"}},
        Others{"bfloat16", {"half", "fp16", "f16", "float16"}, false}, kRounding,
        "Number type of parameters, activations and gradients. `bfloat16`: of activations and of "
        "the copy of the parameters that multiplies them; parameters, gradients and moments are "
        "kept in float32."},
       {"tf32", &RunConfig::tf32, kRounding,
        "float32 on a GPU: whether it may round the factors of products to 10 bits, which is "
        "faster."},
       {"evaluate_every", &RunConfig::evaluate_every, kCountOrNone, Unit{"steps"}, kExecution,
        "Steps between evaluations on the held-out samples; 0 = before the first step and after "
        "the last one only."}});
  Add(keys, {"schedule"},
      {{"kind", &ScheduleConfig::kind, kScheduleWords, kLayout,
        "The rule by which a stage picks its next pass (docs/schedules.md). `interleaved` and "
        "`csv` order the module that feeds no other; what feeds it follows 1f1b."},
       {"chunks", &ScheduleConfig::chunks, Range{0, 1024}, Unit{"stages"}, kLayout,
        "interleaved, csv: pipeline stages on each rank of the ordered module; 0 = 2 for "
        "interleaved, 1 for csv."},
       {"file", &ScheduleConfig::file, kPath, kLayout,
        "csv: the order of every rank, in the grammar of PyTorch's pipelining."},
       // The place of each sample is computed before the job starts.
       {"micro_batch_size", &ScheduleConfig::micro_batch_size, Range{1, 1'000'000}, Unit{"samples"},
        kLayout, "Samples in one microbatch, for each replica of the language model."},
       // Schedules are simulated before the job starts.
       {"microbatches", &ScheduleConfig::microbatches, Range{1, 100'000}, Unit{"microbatches"},
        kLayout, Otherwise{"from `global_batch`, else 1"},
        "Microbatches in one step. The global batch is micro_batch_size * microbatches * dp of the "
        "language model."},
       {"global_batch", GlobalBatchSlot, kInteger, kCount, Unit{"samples"},
        Otherwise{"from `microbatches`"},
        "Samples in one step, in place of `microbatches`, which follow: a multiple of "
        "micro_batch_size * dp of the language model. It clears inherited `microbatches`, and they "
        "clear it; both in one file have to agree."},
       {"window", &ScheduleConfig::window, kWindow, Unit{"microbatches"}, kLayout,
        "Colocated edges: microbatches in one pass of the encoder, \"step\" for all of them; at "
        "most `microbatches`."},
       {"context_exchange", &ScheduleConfig::context_exchange, Words{"ring", "gather"}, kRounding,
        "With cp above 1, how keys and values reach the other ranks: \"ring\" from neighbour to "
        "neighbour while they compute, \"gather\" all at once (docs/parallelism.md)."}});
  Add(keys, {"optimizer"},
      {{"kind", &OptimizerConfig::kind, Words{"adamw"},
        "The update rule: AdamW with decoupled weight decay."},
       {"learning_rate", &OptimizerConfig::learning_rate, kPositive, kTuning,
        "Highest learning rate, reached after the warm-up."},
       {"min_learning_rate", &OptimizerConfig::min_learning_rate, kNotNegative, kTuning,
        "Learning rate at the end of the schedule; at most `learning_rate`."},
       {"warmup_steps", WarmupStepsSlot, kInteger, kCountOrNone, Unit{"steps"}, kTuning,
        "Steps over which the learning rate rises in a straight line."},
       {"warmup_ratio", &OptimizerConfig::warmup_ratio, Range{0, 1}, kTuning,
        Otherwise{"from `warmup_steps`"},
        "The same as a share of the run's steps, rounded up to a step, in place of `warmup_steps`. "
        "It clears an inherited `warmup_steps`, which clears it."},
       {"warmup_from_zero", &OptimizerConfig::warmup_from_zero, kTuning,
        "Whether the first step of a warm-up of n has the factor 0 and the last (n - 1) / n, as in "
        "transformers; else 1 / n and 1."},
       {"schedule", &OptimizerConfig::schedule, Words{"cosine", "linear", "constant"},
        Others{"cosine", {"cosine_with_min_lr"}}, Others{"constant", {"constant_with_warmup"}},
        kTuning,
        "The learning rate after the warm-up: down to `min_learning_rate` along half a cosine or "
        "in a straight line, or constant."},
       {"betas", BetasSlot, kBetas, kTuning, "Decay of the first and of the second moment."},
       {"epsilon", &OptimizerConfig::epsilon, kPositive, kTuning,
        "Added to the root of the second moment."},
       {"weight_decay", &OptimizerConfig::weight_decay, kNotNegative, kTuning,
        "Decoupled decay of all parameters but those of `no_decay`."},
       {"no_decay", &OptimizerConfig::no_decay, kTraitWords, kWords, kTuning,
        "Parameters that do not decay: biases, weights and biases of norms, the class embedding, "
        "embeddings of tokens and positions."},
       {"clip_norm", &OptimizerConfig::clip_norm, kNotNegative, kTuning,
        "Largest norm of all gradients together; 0 = no clipping."},
       {"shard", &OptimizerConfig::shard, Words{"none", "data"}, kLayout,
        "Which replicas hold the moments, and with bfloat16 the masters. \"none\": all of them; "
        "\"data\": those of one instance divide them (ZeRO-1, docs/parallelism.md)."},
       {"instances", &OptimizerConfig::instances, kCount, kLayout,
        "With `shard` = \"data\": groups of replicas that each hold one full set of moments; "
        "divides dp*cp."}});
  Add(keys, {"data"},
      {{"format", &DataConfig::format, kRowFormats,
        "\"llava\": a list of rows like {id, image, conversations}, with the image files in its "
        "folder: JSON, or *.jsonl with one row a line. \"webdataset\": a *.tar archive with the "
        "rows and "
        "their images. \"parquet\": a *.parquet table (docs/data.md). \"auto\": by the ending of "
        "each file."},
       {"train", &DataConfig::train, kPath, kTuning,
        "Training samples: one file, or many as \"shards/{000..999}.tar\" or \"part-*.jsonl\". "
        "This or "
        "`[[data.sources]]` is needed unless all modules are \"synthetic\"."},
       {"shuffle_shards", &DataConfig::shuffle_shards, kCount, Unit{"files"},
        "Each epoch draws an order of the files of a source, and mixes the rows of as many "
        "neighbours."},
       {"cache", &DataConfig::cache, kExecution,
        "Folder of the indexes of data sets of more than 32 MiB or 64 files; \"~\" is your home "
        "folder."},
       {"cache_gib", &DataConfig::cache_gib, Range{1, 1 << 20}, Unit{"GiB"}, kExecution,
        "With more in `cache`, the indexes that were not used for longest are removed."},
       {"workers", &DataConfig::workers, Range{1, 1024}, Unit{"threads"}, kExecution,
        "Threads of each process that read, decode and tokenize samples."},
       {"prefetch", &DataConfig::prefetch, Range{1, 1024}, Unit{"microbatches"}, kExecution,
        "How many of each replica, or windows of a colocated encoder, are prepared ahead."},
       {"prefetch_mib", &DataConfig::prefetch_mib, Range{1, 1 << 20}, Unit{"MiB"}, kExecution,
        "Memory of each process for prepared samples. The next microbatch of each replica is "
        "prepared "
        "even if it needs more."},
       {"feed_address", &DataConfig::feed_address, kExecution,
        "HOST:PORT where process 0 lets feed machines connect, which prepare samples with `troupe "
        "feed` (docs/data.md); \"\" = nowhere."},
       {"held_out", &DataConfig::held_out, kPath, kTuning,
        "Samples for evaluation; \"\" = no evaluation."},
       {"tokenizer", &DataConfig::tokenizer, kTokenizer, kTuning,
        "\"bytes\" (256 bytes, begin, end, padding, then a placeholder per encoder), "
        "\"sentencepiece:FILE\", or \"hf:DIR\", a Hugging Face folder with tokenizer.json and "
        "tokenizer_config.json, or with tokenizer.model. Unless given, the folder of "
        "`model.from`."},
       {"prompt", &DataConfig::prompt,
        Words{"auto", "lines", "plain", "vicuna_v1", "llama3", "chatml"},
        "How turns become one text, and which tokens are learned (docs/data.md). \"auto\": the "
        "format of the chat template in the folder of an \"hf:DIR\" tokenizer, else \"lines\"."},
       {"image_fit", ImageFitSlot, kImageFitWords, Otherwise{"as the folder of `weights` says"},
        "How images become squares, for every module that reads images: its `image_fit`. A module "
        "that states another one is an error."},
       {"on_error", &DataConfig::on_error, Words{"stop", "skip", "substitute"}, kExecution,
        "What happens with rows and files that cannot be used. \"stop\": the run does not start, "
        "or ends. \"skip\": it leaves out the rows. \"substitute\": it keeps rows whose text is "
        "good and puts the mean colour in the place of their images. With both, an image that is "
        "found to be bad only when it is decoded is replaced so."},
       {"skip_limit", &DataConfig::skip_limit, Range{.low = 0}, Unit{"rows"}, kExecution,
        "The most rows that may be left out, with the files that are replaced; more, and the run "
        "ends."},
       {"group_by", &DataConfig::group_by, Words{"none", "modality_length"},
        Others{"modality_length", {"length", "group_by_length"}, false},
        "\"modality_length\": all samples of a step have the same fields, such as an image, in all "
        "but a few steps of an epoch, and are ordered by length, so that a microbatch pads "
        "little."},
       {"order", &DataConfig::order, Words{"random", "balanced"}, kRounding,
        "Where the samples of a step go. \"balanced\": replicas get about the same work of every "
        "module, and microbatches are in an order in which stages wait little for each other. The "
        "samples of a step stay the same (docs/recipes.md)."},
       {"packing", &DataConfig::packing,
        "Whether several samples share the `context` tokens of one place in the batch, without "
        "padding. `micro_batch_size` and `global_batch` count packs then (docs/data.md)."},
       {"pack_window", &DataConfig::pack_window, Range{1, 1 << 24}, Unit{"samples"},
        "With `packing`: neighbouring samples in the order of training that are put into packs "
        "together."}});
  Add(keys, {"data.sources.*"},
      {{"path", &DataSource::path, kRequired, kPath, kTuning, "As `data.train`."},
       {"format", &DataSource::format, kRowFormats, kExecution,
        "As `data.format`, for these files."},
       {"weight", &DataSource::weight, kPositive, Otherwise{"its number of rows"},
        "Its share of the samples, of the sum of all weights. Every prefix of the order has it to "
        "within one sample."},
       {"on_error", &DataSource::on_error, Words{"stop", "skip", "substitute"},
        Otherwise{"as `data.on_error`"}, kExecution, "As `data.on_error`, for these rows."},
       {"skip_limit", &DataSource::skip_limit, Range{.low = 0}, Unit{"rows"},
        Otherwise{"as `data.skip_limit`"}, kExecution,
        "As `data.skip_limit`, of this source. The rows of a source with its own `on_error` or "
        "`skip_limit` are counted apart from the others."}});
  Add(keys, {"trace"},
      {{"messages", &TraceConfig::messages, kExecution,
        "Whether messages between actors, and what devices run, are noted in the run directory: "
        "`troupe trace` reads it."},
       {"buffer_mib", &TraceConfig::buffer_mib, Range{1, 1 << 16}, Unit{"MiB"}, kExecution,
        "What each process keeps of that, on disk and in memory: 8,192 messages or passes per MiB, "
        "the newest."}});
  Add(keys, {"log"},
      {{"tensorboard", &LogConfig::tensorboard, kExecution,
        "Whether the numbers of each step are also written as TensorBoard event files, to "
        "`tensorboard` in the run directory."}});
  return keys;
}

}  // namespace troupe
