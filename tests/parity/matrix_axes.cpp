#include "tests/parity/matrix.hpp"

namespace troupe {

/// Rows that are whole on every rank along tp; where nothing is said they are cut.
Setups WithoutSequenceParallel() {
  return {
      Setup(Disjoint({.tp = 2}), {.tp = 2}).WithoutSp("vision").WithoutSp("language").Quick(),
      Setup(Disjoint({.tp = 2}), {.tp = 2, .dp = 2}).WithoutSp("vision").Float32().Portable(),
      Setup(Disjoint({.tp = 3}), {.tp = 3})
          .Heads("vision", 6)
          .Heads("language", 6, 1)
          .WithoutSp("language")
          .Quick()
          .Float32(),
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2}).WithoutSp("language").ZbH1().Sharded(),
      Setup(Colocated({.tp = 2, .dp = 2}), {.tp = 4})
          .WithoutSp("vision")
          .WithoutSp("language")
          .Float32(),
      Setup(Inline(), {.tp = 2, .pp = 2}).WithoutSp("language").TiedHead(),
      Setup(Disjoint({.tp = 2, .pp = 2}), {.tp = 2, .dp = 2})
          .WithoutSp("language")
          .Adapters("vision", 0.3)
          .Adapters("language", 0.4)
          .Sharded(),
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2})
          .WithoutSp("language")
          .Recomputed("language", Recompute{LayerPart::kLayer}),
  };
}

/// Samples cut over cp in the language model, images in encoders, and both.
Setups WithContextParallel() {
  return {
      Setup({.cp = 2}).Quick().Float32().Portable(),
      Setup({.cp = 3}).Quick().Float32(),
      Setup({.cp = 4, .pp = 2}).Float32().Portable(),
      Setup({.cp = 4}).Context(24).Quick().Float32(),
      Setup({.cp = 2, .pp = 2, .dp = 2}).Gathered().Quick(),
      Setup(Disjoint(), {.cp = 2}).Quick().Float32().Portable(),
      Setup(Disjoint({.dp = 2}), {.cp = 3}).Quick().Float32(),
      Setup(Disjoint({.dp = 4}), {.cp = 4}).Quick().Float32(),
      Setup(Disjoint({.cp = 2}), Layout{}).Quick().Float32().Portable(),
      Setup(Disjoint({.cp = 3}), {.dp = 2}).Quick().Float32(),
      Setup(Disjoint({.cp = 4}), {.tp = 2, .pp = 2}).Float32(),
      Setup(Disjoint({.cp = 2}), {.cp = 2}).Quick().Gathered().Portable(),
      Setup(Disjoint({.cp = 2}), {.cp = 3}).Quick().Float32(),
      Setup(Disjoint({.cp = 3}), {.cp = 2}).Quick().Float32().Gathered(),
      Setup(Disjoint({.cp = 4}), {.cp = 3}).Float32(),
      Setup(Disjoint({.cp = 3}), {.cp = 4}).Float32(),
      Setup(Disjoint({.cp = 2, .dp = 2}), {.cp = 2, .dp = 2}).Quick().Float32().Portable(),
      Setup(Disjoint({.cp = 2}), {.cp = 2, .dp = 3}).Samples(3),
      Setup(Disjoint({.dp = 3}), {.cp = 2, .dp = 2}).Samples(3).Float32(),
      Setup(Disjoint({.cp = 2, .dp = 2}), {.dp = 3}).Samples(1).Microbatches(5),
      Setup(Disjoint({.tp = 2, .cp = 2}), {.tp = 2, .cp = 2}).Quick().Float32().Portable(),
      Setup(Disjoint({.tp = 2, .cp = 2}), {.tp = 2, .cp = 2})
          .WithoutSp("vision")
          .WithoutSp("language")
          .Quick(),
      Setup(Disjoint({.tp = 2}), {.tp = 2, .cp = 3}).WithoutSp("language").Float32(),
      Setup(Disjoint({.cp = 2}), {.tp = 3, .cp = 2}).Heads("language", 6, 1).Float32(),
      Setup(Disjoint({.cp = 2}), {.tp = 3, .cp = 2}).Heads("language", 6, 1).Gathered().ZbH1(),
      Setup(Disjoint({.cp = 2, .pp = 2}), {.cp = 2, .pp = 2}).Quick().Float32(),
      Setup(Disjoint({.pp = 2}), {.cp = 2, .pp = 3}).TiedHead().Quick().Float32(),
      Setup(Disjoint({.cp = 2}), {.cp = 2, .pp = 2}).TiedHead().Gathered(),
      Setup(Disjoint({.cp = 2}), {.cp = 2, .dp = 2}).TiedHead().Float32(),
      Setup(Disjoint({.cp = 2}), {.cp = 2}).ClassToken().Quick(),
      Setup(Disjoint({.cp = 4}), {.cp = 2}).ClassToken().Float32(),
      Setup(Disjoint({.cp = 2}), {.cp = 2}).NoProjector(),
      Setup(Disjoint({.cp = 2}), {.cp = 3}).FeatureLayer(-1).Quick(),
      Setup(Disjoint({.cp = 2}), {.cp = 2}).FeatureLayer(0),
      Setup(Disjoint({.cp = 2}), {.cp = 2, .dp = 2}).ProjectorAtLanguage().Quick().Float32(),
      Setup(Disjoint({.cp = 3}), {.tp = 2, .cp = 2}).ProjectorAtLanguage(),
      Setup(Disjoint({.cp = 2}), {.cp = 2, .pp = 2}).Frozen("vision").Quick().Float32(),
      Setup(Disjoint({.cp = 2}), {.cp = 3}).Frozen("language").Quick(),
      Setup(Disjoint({.cp = 2}), {.cp = 2}).FrozenProjector(),
      Setup(Disjoint({.cp = 2}), {.cp = 2, .pp = 2}).Frozen("vision").Frozen("language"),
      Setup(Disjoint({.cp = 2}), {.cp = 2})
          .Recomputed("language", Recompute{LayerPart::kLayer})
          .Quick(),
      Setup(Disjoint({.cp = 2}), {.tp = 2, .cp = 2})
          .Recomputed("language", Recompute{LayerPart::kAttention})
          .Recomputed("vision", Recompute{LayerPart::kLayer})
          .Float32(),
      Setup(Disjoint({.cp = 2}), {.cp = 2, .pp = 2}).ZbH1().Quick().Float32().Portable(),
      Setup(Disjoint({.cp = 2}), {.cp = 2, .pp = 2}).Gpipe(),
      Setup(Disjoint({.cp = 2}), {.cp = 2, .pp = 2})
          .Layers("language", 6)
          .Microbatches(4)
          .Interleaved(3)
          .Quick(),
      Setup(Disjoint({.cp = 2}), {.cp = 2, .pp = 2})
          .Adapters("vision", 0.25)
          .Adapters("language", 0.5)
          .Quick()
          .Float32(),
      Setup(Disjoint({.tp = 2, .cp = 2}), {.tp = 2, .cp = 2})
          .Adapters("vision", 0.3)
          .Adapters("language", 0.4)
          .ZbH1(),
      Setup(Disjoint({.cp = 2}), {.cp = 2, .dp = 2}).Sharded().Quick().Float32(),
      Setup(Disjoint({.cp = 2, .dp = 2}), {.cp = 2, .dp = 2}).Sharded(2).Quick().Float32(),
      Setup(Disjoint({.cp = 4}), {.cp = 4}).Sharded(4).Float32(),
      Setup(Disjoint({.cp = 2, .dp = 2}), {.cp = 4}).Sharded("vision", 4).TiedHead(),
      Setup(Disjoint({.cp = 3}), {.tp = 2, .cp = 2}).Sharded().Heads("vision", 6).Gathered(),
      Setup(Disjoint({.cp = 2}), {.cp = 2, .pp = 2}).Sharded(2).ZbH1().TiedHead(),
      Setup(Colocated({.dp = 4}), {.cp = 2, .dp = 2}).Quick().Float32().Portable(),
      Setup(Colocated({.dp = 4}), {.cp = 4}).Window(2).Quick(),
      Setup(Colocated({.cp = 2, .dp = 2}), {.tp = 2, .pp = 2}).Quick().Float32(),
      Setup(Colocated({.cp = 2, .dp = 2}), {.cp = 2, .dp = 2}).Window(1).Float32(),
      Setup(Colocated({.tp = 2, .cp = 2}), {.cp = 2, .pp = 2}).Gathered().Sharded(),
      Setup(Colocated({.cp = 4, .dp = 2}), {.tp = 2, .cp = 2, .dp = 2})
          .Window(3)
          .Microbatches(5)
          .Quick(),
      Setup(Colocated({.cp = 3, .dp = 2}), {.cp = 2, .pp = 3}).Float32(),
      Setup(Colocated({.cp = 2, .dp = 2}), {.cp = 2, .pp = 2})
          .Offloaded("vision", Offload::kState)
          .Sharded(2)
          .Quick(),
      Setup(Colocated({.cp = 2, .dp = 2}), {.cp = 4}).Frozen("vision").ProjectorAtLanguage(),
      Setup(Inline(), {.cp = 2, .dp = 2}).Quick().Float32(),
      Setup(Inline(), {.tp = 2, .cp = 2, .pp = 2}).Float32(),
      Setup(Inline(), {.cp = 3}).ProjectorAtLanguage().Sharded(),
      Setup(Inline(), {.cp = 2, .pp = 2}).Adapters("vision", 0.2).Adapters("language", 0.2),
      Setup(Disjoint({.cp = 2}), Disjoint({.cp = 3}), {.cp = 2}).Quick().Float32(),
      Setup(Disjoint({.dp = 2}), Disjoint({.cp = 2}), {.cp = 2, .pp = 2}).Float32(),
      Setup(Colocated({.cp = 4}), Disjoint({.cp = 2}), {.tp = 2, .cp = 2}).Quick(),
      Setup(Colocated({.cp = 2, .dp = 2}), Inline(), {.cp = 2, .dp = 2}).Sharded(),
      Setup(Disjoint({.cp = 2, .dp = 2}), {.cp = 2, .dp = 2}).Tiles().Quick().Float32(),
      Setup(Disjoint({.cp = 3}), {.tp = 2, .cp = 2}).Tiles().ProjectorAtLanguage(),
      Setup(Colocated({.cp = 2, .dp = 2}), {.cp = 4}).Tiles().Window(2).Float32(),
      Setup(Inline(), {.cp = 2, .dp = 2}).Tiles(),
      Setup(Disjoint({.cp = 2}), {.cp = 2, .dp = 2}).PipelineFastest("language").NoClip(),
      Setup(Disjoint({.cp = 4}), {.cp = 2, .dp = 2})
          .Ranks("vision", {0, 2, 4, 6})
          .Ranks("language", {7, 1, 5, 3}),
  };
}

/// Several samples in one place of a batch, without padding.
Setups WithPacks() {
  return {
      Setup(Layout{}).Context(200).Packed().Quick().Float32().Portable(),
      Setup({.pp = 2, .dp = 2}).Context(300).Packed(64).Quick(),
      Setup(Disjoint(), Layout{}).Context(300).Packed().Quick().Float32().Portable(),
      Setup(Disjoint({.dp = 4}), {.dp = 2}).Context(200).Packed().Quick().Float32(),
      Setup(Disjoint({.dp = 3}), {.dp = 2}).Context(250).Packed(40).Float32(),
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2}).Context(250).Packed().Quick().Float32(),
      Setup(Disjoint({.tp = 2}), {.tp = 2}).Context(200).Packed().WithoutSp("language"),
      Setup(Disjoint({.cp = 2}), {.cp = 2}).Context(250).Packed().Quick().Float32().Portable(),
      Setup(Disjoint({.dp = 2}), {.cp = 3}).Context(400).Packed(64).Float32().Gathered(),
      Setup(Disjoint({.cp = 2}), {.tp = 2, .cp = 2, .dp = 1}).Context(250).Packed().Quick(),
      Setup(Disjoint({.dp = 2}), {.pp = 2, .dp = 2}).Context(200).Packed().Sharded().ZbH1(),
      Setup(Disjoint({.dp = 2}), {.pp = 2}).Context(200).Packed().TiedHead().ProjectorAtLanguage(),
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2})
          .Context(200)
          .Packed()
          .Adapters("vision", 0.3)
          .Adapters("language", 0.4)
          .Quick(),
      Setup(Disjoint({.dp = 2}), {.dp = 2})
          .Context(200)
          .Packed()
          .Recomputed("language", Recompute{LayerPart::kLayer})
          .Frozen("vision"),
      Setup(Colocated({.dp = 4}), {.tp = 2, .dp = 2}).Context(200).Packed().Quick().Float32(),
      Setup(Colocated({.cp = 2, .dp = 2}), {.cp = 2, .pp = 2}).Context(250).Packed().Window(2),
      Setup(Colocated({.dp = 4}), {.pp = 2, .dp = 2})
          .Context(200)
          .Packed()
          .Window(1)
          .Offloaded("vision", Offload::kState),
      Setup(Inline(), {.tp = 2, .pp = 2}).Context(200).Packed().Quick().Float32(),
      Setup(Inline(), {.cp = 2, .dp = 2}).Context(250).Packed(),
      Setup(Disjoint({.dp = 2}), Disjoint({.cp = 3}), {.tp = 2}).Context(300).Packed().Quick(),
      Setup(Colocated({.dp = 4}), Inline(), {.tp = 2, .dp = 2}).Context(300).Packed().Float32(),
      Setup(Disjoint({.dp = 3}), {.dp = 2}).Context(400).Tiles().Packed().Float32(),
      Setup(Disjoint({.cp = 2}), {.tp = 2, .cp = 2}).Context(400).Tiles().Packed(),
      Setup(Disjoint({.dp = 2}), {.pp = 2, .dp = 2})
          .Context(200)
          .Packed()
          .Layers("language", 6)
          .Microbatches(4)
          .Interleaved(3),
  };
}

/// Optimizer states that replicas divide, in one instance or several.
Setups WithShardedStates() {
  return {
      Setup(Disjoint({.dp = 4}), {.dp = 2}).Sharded().Quick().Float32().Portable(),
      Setup(Disjoint({.dp = 4}), {.dp = 4}).Sharded(2).Quick().Float32().Portable(),
      Setup(Disjoint({.dp = 4}), {.tp = 2, .dp = 2}).Sharded().Quick().Float32(),
      Setup(Disjoint({.dp = 3}), {.dp = 2}).Sharded("vision").Quick(),
      Setup(Disjoint({.dp = 2}), {.dp = 4}).Sharded("language", 2).Quick().Float32(),
      Setup(Disjoint({.dp = 4}), {.dp = 2}).Sharded("vision", 2).Sharded("language", 1),
      Setup(Disjoint({.dp = 2}), {.tp = 2, .pp = 2}).Sharded().Float32(),
      Setup(Disjoint({.tp = 2, .dp = 2}), {.tp = 2, .dp = 2}).Sharded().Float32(),
      Setup(Disjoint({.pp = 2, .dp = 2}), {.pp = 2, .dp = 2}).Sharded().TiedHead().Quick(),
      Setup(Disjoint({.dp = 2}), {.pp = 2, .dp = 2}).Sharded().TiedHead().Float32(),
      Setup(Disjoint({.pp = 2}), {.pp = 3, .dp = 2}).Sharded().TiedHead(),
      Setup(Disjoint({.dp = 2}), {.tp = 2, .dp = 2}).Sharded().TiedHead().ClassToken(),
      Setup(Disjoint({.dp = 2}), {.tp = 3, .dp = 2}).Heads("language", 6, 3).Sharded(),
      Setup(Disjoint(), {.tp = 3, .dp = 2}).Heads("language", 6, 1).Sharded().Portable(),
      Setup(Disjoint({.tp = 3}), {.dp = 3}).Heads("vision", 6).Sharded().Float32(),
      Setup(Disjoint({.dp = 2}), {.dp = 2}).Sharded().NoClip().Samples(1).Microbatches(6),
      Setup(Disjoint({.dp = 4}), {.dp = 3}).Sharded().Samples(4).Microbatches(2),
      Setup(Disjoint({.dp = 4}), {.dp = 2}).Sharded().Frozen("vision").Float32(),
      Setup(Disjoint({.dp = 4}), {.dp = 2}).Sharded().Frozen("language").Quick(),
      Setup(Disjoint({.dp = 2}), {.dp = 2}).Sharded().Frozen("vision").Frozen("language"),
      Setup(Disjoint({.dp = 2}), {.dp = 2}).Sharded().FrozenProjector().FeatureLayer(0),
      Setup(Disjoint({.dp = 2}), {.dp = 4}).Sharded("language", 4).ProjectorAtLanguage(),
      Setup(Disjoint({.dp = 4}), {.pp = 2, .dp = 2}).Sharded().Recipe().Float32(),
      Setup(Disjoint({.dp = 2}), {.pp = 2, .dp = 2}).Sharded().ZbH1().Quick().Float32().Portable(),
      Setup(Disjoint({.pp = 2}), {.pp = 2, .dp = 2})
          .Sharded()
          .Adapters("vision", 0.25)
          .Adapters("language", 0.5)
          .ZbH1(),
      Setup(Disjoint({.dp = 3}), {.dp = 2}).Sharded().Adapters("language", 0.1).Quick(),
      Setup(Disjoint({.dp = 2}), {.pp = 2, .dp = 2}).Sharded().Gpipe(),
      Setup(Disjoint({.dp = 2}), {.pp = 2, .dp = 2})
          .Layers("language", 6)
          .Microbatches(4)
          .Interleaved(3)
          .TiedHead()
          .Sharded()
          .Quick(),
      Setup(Disjoint({.dp = 2}), {.pp = 2, .dp = 2})
          .Recomputed("language", Recompute{LayerPart::kLayer})
          .Recomputed("vision", Recompute{LayerPart::kAttention})
          .Sharded()
          .Float32(),
      Setup(Colocated({.dp = 4}), {.tp = 2, .dp = 2}).Sharded().Quick().Float32().Portable(),
      Setup(Colocated({.dp = 4}), {.dp = 4}).Sharded(2).Window(2),
      Setup(Colocated({.dp = 4}), {.tp = 2, .pp = 2}).Sharded("vision", 2).Window(1).Float32(),
      Setup(Colocated({.tp = 2, .dp = 2}), {.pp = 2, .dp = 2}).Sharded().ZbH1(),
      Setup(Colocated({.dp = 8}), {.tp = 2, .pp = 2, .dp = 2}).Sharded(2).Window(3).Microbatches(5),
      Setup(Colocated({.dp = 4}), {.pp = 2, .dp = 2})
          .Sharded()
          .Window(2)
          .Offloaded("vision", Offload::kState)
          .Quick()
          .Float32(),
      Setup(Colocated({.dp = 4}), {.dp = 4}).Sharded(4).Offloaded("vision", Offload::kParameters),
      Setup(Inline(), {.tp = 2, .dp = 2}).Sharded().Quick().Float32(),
      Setup(Inline(), {.pp = 2, .dp = 4}).Sharded(2).Float32(),
      Setup(Inline(), Inline(), {.dp = 3}).Sharded().ProjectorAtLanguage(),
      Setup(Disjoint({.dp = 2}), Disjoint({.dp = 2}), {.tp = 2, .dp = 2}).Sharded().Float32(),
      Setup(Colocated({.dp = 4}), Disjoint({.tp = 2, .dp = 2}), {.tp = 2, .dp = 2})
          .Sharded()
          .Quick(),
      Setup(Disjoint({.dp = 3}), {.dp = 2}).Tiles().Sharded().Float32(),
  };
}

}  // namespace troupe
