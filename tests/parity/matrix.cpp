#include "tests/parity/matrix.hpp"

namespace troupe {
namespace {

/// Encoder and language model cut in every direction, each on its own ranks.
Setups Cuts() {
  return {
      Setup(Disjoint(), Layout{}).Quick().Float32().Portable(),
      Setup(Disjoint({.dp = 4}), {.tp = 2, .pp = 2}).Quick().Float32().Portable(),
      Setup(Disjoint({.tp = 2}), Layout{}).Float32(),
      Setup(Disjoint({.tp = 4}), {.dp = 2}),
      Setup(Disjoint({.pp = 2}), Layout{}).Float32(),
      Setup(Disjoint({.pp = 2, .dp = 2}), {.dp = 2}),
      Setup(Disjoint({.pp = 3}), {.dp = 2}).Layers("vision", 4).Quick(),
      Setup(Disjoint({.tp = 2, .dp = 2}), {.tp = 2, .dp = 2}).Float32(),
      Setup(Disjoint({.tp = 2, .pp = 2}), {.pp = 2, .dp = 2}).Float32(),
      Setup(Disjoint({.tp = 2}), {.tp = 3}).Heads("language", 6, 3),
      Setup(Disjoint({.tp = 3}), {.tp = 3})
          .Heads("vision", 6)
          .Heads("language", 6, 1)
          .Quick()
          .Portable(),
      Setup(Disjoint({.dp = 2}), {.tp = 4}).Quick().Float32().Portable(),
      Setup(Disjoint({.tp = 4}), {.tp = 4}).Heads("language", 4, 1),
      Setup(Disjoint({.dp = 2}), {.pp = 3}).Quick(),
      Setup(Disjoint(), {.pp = 4}).Layers("language", 4).Quick(),
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 3}),
      Setup(Disjoint({.pp = 2}), {.tp = 2, .pp = 3}).Microbatches(5),
      Setup({.tp = 2, .pp = 2}).Quick(),
      Setup({.pp = 2, .dp = 3}),
  };
}

/// Replicas that do not pair up one to one.
Setups Fans() {
  return {
      Setup(Disjoint({.dp = 2}), {.dp = 4}).Quick(),
      Setup(Disjoint({.dp = 4}), {.dp = 2}).Quick().Float32(),
      Setup(Disjoint({.dp = 3}), {.dp = 2}).Quick().Float32().Portable(),
      Setup(Disjoint({.dp = 2}), {.dp = 3}).Quick(),
      Setup(Disjoint({.dp = 4}), Layout{}).Quick(),
      Setup(Disjoint(), {.dp = 4}).Quick().Float32(),
      Setup(Disjoint({.dp = 4}), {.dp = 3}).Quick(),
      Setup(Disjoint({.dp = 3}), {.dp = 4}),
      Setup(Disjoint({.dp = 3}), Layout{}).Samples(4),
      Setup(Disjoint(), {.dp = 3}).Samples(3),
      Setup(Disjoint({.dp = 4}), {.pp = 2, .dp = 2}).Samples(5),
      Setup(Disjoint({.tp = 2, .dp = 2}), {.dp = 3}).Samples(3).Float32(),
      Setup(Disjoint({.dp = 3}), {.tp = 2, .dp = 2}).Samples(3),
      Setup(Disjoint({.dp = 4}), {.pp = 2}).Samples(1).Microbatches(6).Quick(),
      Setup(Disjoint({.dp = 3}), {.dp = 2}).Samples(1).Microbatches(5).Float32(),
  };
}

/// The properties of a model other than its sizes.
Setups Models() {
  return {
      Setup(Disjoint({.dp = 2}), {.tp = 2}).TiedHead().Quick(),
      Setup(Disjoint({.pp = 2}), {.pp = 2}).TiedHead().Quick().Float32().Portable(),
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2}).TiedHead().Float32(),
      Setup(Disjoint(), {.pp = 3, .dp = 2}).TiedHead(),
      Setup(Disjoint({.dp = 2}), {.dp = 2}).ClassToken().Quick(),
      Setup(Disjoint({.pp = 2}), {.tp = 2}).ClassToken().Float32(),
      Setup(Disjoint({.dp = 2}), {.tp = 2}).NoProjector().Quick(),
      Setup(Disjoint({.dp = 2}), {.tp = 2}).FeatureLayer(-1),
      Setup(Disjoint({.tp = 2}), {.dp = 2}).FeatureLayer(0),
      Setup(Disjoint({.dp = 2}), {.pp = 2, .dp = 2}).Context(48),
      Setup(Disjoint({.dp = 2}), {.tp = 2}).ProjectorAtLanguage().Quick().Float32(),
      Setup(Disjoint({.dp = 4}), {.pp = 2, .dp = 2}).ProjectorAtLanguage(),
  };
}

/// What trains, and how far gradients travel.
Setups Freezing() {
  return {
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2}).Frozen("vision").Quick().Float32().Portable(),
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2}).Frozen("language").Quick(),
      Setup(Disjoint({.dp = 2}), {.pp = 2}).FrozenProjector().Quick(),
      Setup(Disjoint({.dp = 2}), {.dp = 3}).Frozen("vision").FrozenProjector(),
      Setup(Disjoint({.pp = 2}), {.pp = 2}).Frozen("vision").Frozen("language").Quick(),
      Setup(Disjoint({.dp = 2}), {.tp = 2}).Frozen("vision").ProjectorAtLanguage(),
      Setup(Disjoint({.dp = 3}), {.pp = 2})
          .Frozen("vision")
          .Frozen("language")
          .ProjectorAtLanguage(),
      Setup(Colocated({.dp = 4}), {.tp = 2, .pp = 2}).Frozen("vision").Quick(),
      Setup(Colocated({.dp = 4}), {.tp = 2, .dp = 2}).Frozen("language").Float32(),
      Setup(Colocated({.dp = 2}), {.tp = 2}).Frozen("vision").FrozenProjector().Window(2),
      Setup(Colocated({.dp = 4}), {.tp = 4}).Frozen("vision").Frozen("language").Window(1),
      Setup(Inline(), {.tp = 2, .pp = 2}).Frozen("vision").Float32(),
      Setup(Inline(), {.pp = 2, .dp = 2}).Frozen("language"),
  };
}

/// What a user may say about ranks, stages, credits and clipping.
Setups Arrangements() {
  return {
      Setup(Disjoint({.dp = 2}), {.pp = 2, .dp = 2}).LayersPerStage("language", {2, 1}).Quick(),
      Setup(Disjoint({.pp = 2}), {.tp = 2})
          .Layers("vision", 4)
          .LayersPerStage("vision", {1, 2})
          .Quick(),
      Setup(Disjoint({.pp = 2, .dp = 2}), {.pp = 2, .dp = 2})
          .PipelineFastest("vision")
          .PipelineFastest("language")
          .Quick(),
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 3}).PipelineFastest("language").Float32(),
      Setup(Disjoint({.dp = 4}), {.tp = 2, .pp = 2})
          .Ranks("vision", {0, 2, 4, 6})
          .Ranks("language", {7, 1, 5, 3})
          .Quick(),
      Setup(Disjoint({.dp = 2}), {.pp = 2}).Credits(1).Quick(),
      Setup(Disjoint({.dp = 4}), {.pp = 2, .dp = 2}).Credits(1).Microbatches(5).Float32(),
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2}).NoClip().Quick(),
      Setup(Colocated({.dp = 4}), {.tp = 2, .dp = 2}).NoClip(),
      Setup(Disjoint({.dp = 2}), {.pp = 2}).Microbatches(1),
      Setup(Disjoint({.dp = 2}), {.dp = 2}).Samples(1).Microbatches(6).Seed(5).Float32(),
      Setup(Colocated({.dp = 4}), {.pp = 2, .dp = 2})
          .Ranks("vision", {3, 1, 2, 0})
          .PipelineFastest("language")
          .Float32(),
  };
}

/// Encoder and language model take turns on the same ranks.
Setups Sharing() {
  return {
      Setup(Colocated({.dp = 4}), {.tp = 4}).Quick().Float32(),
      Setup(Colocated({.dp = 4}), {.tp = 2, .dp = 2}).Quick(),
      Setup(Colocated({.dp = 4}), {.dp = 4}),
      Setup(Colocated({.tp = 4}), {.dp = 4}).Quick().Float32(),
      Setup(Colocated({.tp = 2, .dp = 2}), {.tp = 4}),
      Setup(Colocated({.tp = 2, .dp = 2}), {.dp = 4}).Window(2).Float32().Portable(),
      Setup(Colocated({.tp = 4}), {.tp = 4}).Float32(),
      Setup(Colocated({.dp = 4}), {.pp = 2, .dp = 2}).Window(1).Quick().Float32(),
      Setup(Colocated({.dp = 4}), {.tp = 2, .pp = 2}).Window(2).Quick(),
      Setup(Colocated({.dp = 8}), {.tp = 4, .dp = 2}),
      Setup(Colocated({.dp = 8}), {.tp = 2, .pp = 2, .dp = 2}).Window(3).Microbatches(5),
      Setup(Colocated({.tp = 2}), {.pp = 2}).Window(1).Float32(),
      Setup(Colocated({.pp = 2, .dp = 2}), {.pp = 2, .dp = 2}),
      Setup(Colocated({.pp = 2}), {.dp = 2}).Quick(),
      Setup(Colocated({.pp = 2, .dp = 2}), {.tp = 2, .dp = 2}).Window(2).Float32(),
      Setup(Colocated({.pp = 3}), {.dp = 3}).Layers("vision", 4),
      Setup(Colocated({.dp = 3}), {.tp = 3}).Heads("language", 6, 3).Quick(),
      Setup(Colocated({.tp = 3}), {.dp = 3}).Heads("vision", 6).Window(2),
      Setup(Colocated({.dp = 6}), {.pp = 3, .dp = 2}).Window(2),
      Setup(Colocated({.tp = 3, .dp = 2}), {.tp = 2, .dp = 3})
          .Heads("vision", 6)
          .Quick()
          .Float32()
          .Portable(),
      Setup(Colocated({.tp = 2, .dp = 3}), {.tp = 3, .dp = 2}).Heads("language", 6, 3).Samples(3),
      Setup(Colocated({.dp = 4}), {.tp = 4}).Samples(1).Microbatches(6).Window(2).Quick(),
      Setup(Colocated({.tp = 2, .dp = 3}), {.pp = 3, .dp = 2}).Samples(4).Microbatches(4).Quick(),
      Setup(Colocated({.tp = 2, .dp = 3}), {.pp = 3, .dp = 2})
          .Samples(4)
          .Microbatches(5)
          .Window(2)
          .Float32()
          .Portable(),
      Setup(Colocated({.dp = 6}), {.pp = 3, .dp = 2}).Samples(4).Microbatches(4).Window(3),
      Setup(Colocated({.pp = 3, .dp = 2}), {.tp = 2, .dp = 3})
          .Layers("vision", 4)
          .Samples(1)
          .Microbatches(5)
          .Window(2),
      Setup(Colocated({.dp = 3}), {.tp = 3}).Heads("language", 6, 3).Samples(1).Microbatches(7),
      Setup(Colocated({.dp = 4}), {.tp = 2, .pp = 2}).TiedHead().ClassToken(),
      Setup(Colocated({.dp = 4}), {.tp = 2, .dp = 2}).ProjectorAtLanguage().Window(2).Float32(),
      Setup(Colocated({.dp = 2}), {.pp = 2}).Window(3).Microbatches(7).Samples(1).Quick(),
  };
}

/// The encoder inside the language model's first stage.
Setups Inlined() {
  return {
      Setup(Inline(), Layout{}).Float32(),
      Setup(Inline(), {.tp = 2, .pp = 2}).Quick().Float32().Portable(),
      Setup(Inline(), {.pp = 2, .dp = 2}),
      Setup(Inline(), {.tp = 4}).ClassToken().Float32(),
      Setup(Inline(), {.tp = 2, .pp = 2, .dp = 2}).TiedHead(),
      Setup(Inline(), {.pp = 3, .dp = 2}).ProjectorAtLanguage(),
      Setup(Inline(), {.dp = 3}).Samples(1).Microbatches(5),
  };
}

/// Two encoders, placed alike and differently.
Setups Pairs() {
  return {
      Setup(Disjoint({.dp = 2}), Disjoint({.tp = 2}), {.tp = 2, .pp = 2})
          .Quick()
          .Float32()
          .Portable(),
      Setup(Disjoint({.dp = 3}), Disjoint({.dp = 2}), {.dp = 3}).Samples(3),
      Setup(Disjoint({.pp = 2}), Disjoint(), {.pp = 2}).Microbatches(5).Float32(),
      Setup(Disjoint({.dp = 2}), Disjoint({.pp = 2}), {.dp = 4}).Credits(1),
      Setup(Disjoint({.dp = 2}), Disjoint({.tp = 2}), {.tp = 2, .pp = 2}).Frozen("vision"),
      Setup(Colocated({.dp = 4}), Disjoint({.tp = 2, .dp = 2}), {.tp = 2, .dp = 2})
          .Quick()
          .Float32(),
      Setup(Disjoint({.dp = 2}), Colocated({.dp = 4}), {.tp = 2, .pp = 2}).Window(2).Quick(),
      Setup(Colocated({.tp = 2, .dp = 2}), Disjoint({.dp = 3}), {.pp = 2, .dp = 2})
          .Window(1)
          .Frozen("detail"),
      Setup(Colocated({.dp = 4}), Colocated({.tp = 2, .dp = 2}), {.tp = 4}).Quick().Float32(),
      Setup(Colocated({.dp = 2}), Colocated({.pp = 2}), {.pp = 2}).Window(2),
      Setup(Inline(), Disjoint({.dp = 3}), {.tp = 2, .dp = 2}).Quick(),
      Setup(Inline(), Colocated({.dp = 4}), {.tp = 2, .dp = 2}).Float32(),
      Setup(Inline(), Inline(), {.tp = 2, .pp = 2}).ProjectorAtLanguage(),
  };
}

/// Neither 1f1b nor gpipe, for three microbatches; the first rank splits its backwards.
constexpr const char* kOrders =
    "0F0,0F1,0F2,0I0,0W0,0I1,0I2,0W1,0W2\n"
    "1F0,1F1,1B0,1F2,1B1,1B2\n";

/// In which order a pipeline works, and in how many pieces.
Setups Schedules() {
  return {
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2}).Gpipe().Quick(),
      Setup(Disjoint({.pp = 2}), {.pp = 3}).Microbatches(4).Gpipe().Float32(),
      Setup(Colocated({.dp = 4}), {.tp = 2, .pp = 2}).Gpipe(),
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 3})
          .Microbatches(5)
          .ZbH1()
          .Quick()
          .Float32()
          .Portable(),
      Setup(Disjoint({.pp = 2}), {.pp = 2}).TiedHead().ZbH1(),
      Setup(Disjoint({.dp = 2}), {.pp = 2}).Frozen("vision").ZbH1(),
      Setup(Disjoint({.dp = 2}), {.pp = 2}).Frozen("language").ZbH1(),
      Setup(Colocated({.dp = 4}), {.tp = 2, .pp = 2}).Window(2).ZbH1().Float32(),
      Setup(Inline(), {.pp = 2, .dp = 2}).ZbH1(),
      Setup({.pp = 2}).Layers("language", 4).Microbatches(4).Interleaved(2).Quick(),
      Setup(Disjoint({.dp = 3}), {.tp = 2, .pp = 2})
          .Layers("language", 5)
          .Microbatches(4)
          .Interleaved(2)
          .Quick()
          .Float32(),
      Setup(Disjoint({.dp = 2}), {.pp = 2, .dp = 2})
          .Layers("language", 6)
          .Microbatches(6)
          .Interleaved(3)
          .TiedHead(),
      Setup(Disjoint({.dp = 2}), {.pp = 2})
          .Layers("language", 5)
          .LayersPerStage("language", {1, 2, 1, 1})
          .Microbatches(4)
          .Interleaved(2)
          .Frozen("vision")
          .FrozenProjector(),
      Setup(Colocated({.dp = 4}), {.tp = 2, .pp = 2})
          .Layers("language", 4)
          .Microbatches(4)
          .Interleaved(2)
          .Float32(),
      Setup(Inline(), {.tp = 2, .pp = 2}).Layers("language", 4).Microbatches(2).Interleaved(2),
      Setup(Disjoint({.dp = 2}), {.pp = 2}).Csv(kOrders).Quick().Float32(),
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2}).Frozen("language").Csv(kOrders),
  };
}

/// What is computed again instead of being kept.
Setups Recomputation() {
  const auto attention = Recompute{LayerPart::kAttention};
  const auto full = Recompute{LayerPart::kLayer};
  const auto up = Recompute{LayerPart::kMlpUp};
  const auto mlp = Recompute{LayerPart::kMlp};
  return {
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2})
          .Recomputed("language", full)
          .Recomputed("vision", attention)
          .Quick(),
      Setup(Disjoint({.tp = 2}), {.pp = 2})
          .Recomputed("language", attention)
          .Recomputed("vision", full)
          .ZbH1()
          .Quick()
          .Float32()
          .Portable(),
      Setup(Colocated({.dp = 4}), {.tp = 4})
          .Recomputed("language", full)
          .Recomputed("vision", full)
          .Float32(),
      Setup(Inline(), {.tp = 2, .pp = 2}).Recomputed("language", full).Recomputed("vision", full),
      Setup(Disjoint({.dp = 2}), {.pp = 2}).Recomputed("language", full).Frozen("language"),
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2})
          .Recomputed("language", {LayerPart::kAttention, LayerPart::kMlpUp})
          .Recomputed("vision", up)
          .Quick()
          .Float32()
          .Portable(),
      Setup(Disjoint({.tp = 2}), {.tp = 2, .pp = 2})
          .Recomputed("language", mlp)
          .Recomputed("vision", mlp)
          .ZbH1()
          .Quick(),
      Setup(Disjoint({.tp = 2}), {.tp = 2, .pp = 2})
          .WithoutSp("language")
          .Recomputed("language", up)
          .Adapters("language", 0.3)
          .ZbH1(),
      Setup({.tp = 2, .dp = 2, .ep = 4})
          .Experts(4)
          .SharedExpert()
          .Recomputed("language", {LayerPart::kAttention, LayerPart::kMlpUp})
          .Quick()
          .Float32(),
      Setup({.pp = 2, .dp = 2, .ep = 2}).Experts(4).Recomputed("language", mlp).ZbH1().Quick(),
      Setup({.tp = 2, .dp = 2, .ep = 2, .etp = 2})
          .Experts(4)
          .WithoutSp("language")
          .Recomputed("language", mlp),
  };
}

/// Activations that are in host memory until their backward.
Setups AwayActivations() {
  const auto full = Recompute{LayerPart::kLayer};
  return {
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2})
          .ActivationsAway("language")
          .ActivationsAway("vision")
          .Quick()
          .Float32(),
      Setup(Disjoint({.tp = 2}), {.pp = 2})
          .ActivationsAway("language", {0, 2})
          .ActivationsAway("vision", {1})
          .ZbH1()
          .Quick()
          .Portable(),
      Setup(Colocated({.dp = 4}), {.tp = 4})
          .ActivationsAway("vision")
          .ActivationsAway("language")
          .Offloaded("vision", Offload::kState)
          .Quick(),
      Setup(Inline(), {.tp = 2, .pp = 2}).ActivationsAway("vision").ActivationsAway("language"),
      Setup(Disjoint({.dp = 2}), {.pp = 2})
          .ActivationsAway("language")
          .Recomputed("language", full)
          .ActivationsAway("vision")
          .Recomputed("vision", Recompute{LayerPart::kAttention}),
      Setup(Disjoint({.dp = 2}), {.pp = 2}).ActivationsAway("language").Frozen("language"),
      Setup(Disjoint({.dp = 2}), {.pp = 2}).ActivationsAway("language").Gpipe().Float32(),
      Setup(Disjoint({.tp = 2}), {.tp = 2, .pp = 2})
          .ActivationsAway("language", {0, 1, 2})
          .Adapters("language", 0.3),
      Setup({.tp = 2, .dp = 2, .ep = 4})
          .Experts(4)
          .SharedExpert()
          .ActivationsAway("language", {0, 1, 2})
          .Quick()
          .Float32(),
      Setup({.pp = 2, .dp = 2, .ep = 2})
          .Experts(4)
          .ActivationsAway("language")
          .Recomputed("language", Recompute{LayerPart::kMlp})
          .ZbH1(),
  };
}

/// The keys of training recipes.
Setups Recipes() {
  return {
      Setup(Disjoint({.tp = 2, .dp = 2}), {.tp = 2, .dp = 2}).Recipe().Quick().Float32(),
      Setup(Colocated({.dp = 4}), {.tp = 2, .pp = 2}).ProjectorAtLanguage().Recipe(),
      Setup(Inline(), {.pp = 2, .dp = 2}).TiedHead().Recipe(),
  };
}

/// Modules whose adapters train, and drop inputs by sample.
Setups WithAdapters() {
  const auto full = Recompute{LayerPart::kLayer};
  return {
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2})
          .Adapters("language", 0.0)
          .Frozen("vision")
          .Quick(),
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2}).Adapters("language", 0.25).Quick().Float32(),
      Setup(Disjoint({.tp = 2, .pp = 2}), {.dp = 2}).Adapters("vision", 0.4).Portable(),
      Setup(Disjoint({.dp = 3}), {.dp = 2}).Adapters("vision", 0.25).Adapters("language", 0.1),
      Setup(Disjoint({.pp = 2}), {.pp = 2, .dp = 2})
          .Adapters("vision", 0.25)
          .Adapters("language", 0.5)
          .ZbH1(),
      Setup(Colocated({.tp = 2, .dp = 2}), {.pp = 2, .dp = 2})
          .Adapters("vision", 0.5)
          .Adapters("language", 0.25)
          .Window(2)
          .Quick(),
      Setup(Colocated({.dp = 4}), {.tp = 4}).Adapters("vision", 0.3).Recomputed("vision", full),
      Setup(Inline(), {.tp = 2, .dp = 2})
          .Adapters("vision", 0.5)
          .Adapters("language", 0.5)
          .Quick()
          .Float32(),
      Setup(Inline(), {.tp = 3})
          .Heads("vision", 6)
          .Heads("language", 6, 1)
          .Adapters("vision", 0.2)
          .Adapters("language", 0.4)
          .Recomputed("language", full)
          .Portable(),
  };
}

/// Images of many sizes that are cut into tiles.
Setups WithTiles() {
  return {
      Setup(Disjoint({.dp = 3}), {.dp = 2}).Tiles().Quick().Float32(),
      Setup(Disjoint({.tp = 2, .pp = 2}), {.tp = 2, .pp = 2}).Tiles().ProjectorAtLanguage(),
      Setup(Disjoint({.dp = 2}), {.pp = 2, .dp = 2}).Tiles().Adapters("vision", 0.3).ZbH1(),
      Setup(Disjoint(), {.tp = 2, .pp = 3}).Tiles().Frozen("vision").Frozen("language").Portable(),
      Setup(Disjoint({.dp = 2}), {.pp = 2}).Tiles().FrozenProjector().Frozen("vision"),
      Setup(Colocated({.tp = 2, .dp = 2}), {.pp = 2, .dp = 2}).Tiles().Window(2).Quick().Float32(),
      Setup(Colocated({.dp = 4}), {.tp = 4}).Tiles().Offloaded("vision", Offload::kState),
      Setup(Inline(), {.tp = 2, .dp = 2}).Tiles().Quick().Float32(),
      Setup(Inline(), Disjoint({.dp = 3}), {.dp = 2}).Tiles().Float32(),
  };
}

/// What of an encoder is away while the language model computes.
Setups Offloading() {
  const auto parameters = Offload::kParameters;
  const auto state = Offload::kState;
  return {
      Setup(Colocated({.dp = 4}), {.tp = 2, .pp = 2})
          .Window(2)
          .Offloaded("vision", state)
          .Quick()
          .Float32(),
      Setup(Colocated({.tp = 3, .dp = 2}), {.tp = 2, .dp = 3})
          .Heads("vision", 6)
          .Offloaded("vision", parameters)
          .Quick(),
      Setup(Colocated({.pp = 2, .dp = 2}), {.pp = 2, .dp = 2})
          .Recomputed("vision", Recompute{LayerPart::kLayer})
          .Offloaded("vision", state)
          .Float32(),
      Setup(Colocated({.dp = 4}), {.tp = 4}).Frozen("vision").Window(1).Offloaded("vision", state),
      Setup(Colocated({.dp = 4}), Colocated({.tp = 2, .dp = 2}), {.tp = 2, .pp = 2})
          .Offloaded("vision", parameters)
          .Offloaded("detail", state),
  };
}

}  // namespace

Setups Matrix() {
  Setups all;
  for (const Setups& part : {Cuts(),
                             Fans(),
                             Models(),
                             Freezing(),
                             Arrangements(),
                             Sharing(),
                             Inlined(),
                             Pairs(),
                             Schedules(),
                             Recomputation(),
                             AwayActivations(),
                             Offloading(),
                             Recipes(),
                             WithAdapters(),
                             WithTiles(),
                             WithShardedStates(),
                             WithoutSequenceParallel(),
                             WithContextParallel(),
                             WithPacks(),
                             WithExperts()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace troupe
