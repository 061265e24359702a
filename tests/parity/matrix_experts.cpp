#include "tests/parity/matrix.hpp"

namespace troupe {

/// Experts of the language model, divided over ranks or not.
Setups WithExperts() {
  return {
      Setup(Layout{}).Experts(4).Quick().Float32().Portable(),
      Setup({.dp = 2, .ep = 2}).Experts(4).Quick().Float32().Portable(),
      Setup({.dp = 4, .ep = 4}).Experts(8).Quick().Float32(),
      Setup({.dp = 4, .ep = 2}).Experts(6, 3).Quick().Float32(),
      Setup({.dp = 3, .ep = 3}).Experts(6, 1).Float32(),
      Setup({.tp = 2, .dp = 2, .ep = 2}).Experts(4).Quick().Float32().Portable(),
      Setup({.tp = 2, .dp = 2, .ep = 4}).Experts(8).Quick().Float32(),
      Setup({.tp = 2, .dp = 4, .ep = 2}).Experts(4).Float32(),
      Setup({.tp = 2, .dp = 4, .ep = 4}).Experts(4).Quick(),
      Setup({.tp = 2, .dp = 3, .ep = 2}).Experts(4).Float32(),
      Setup({.tp = 2, .dp = 4, .ep = 8}).Experts(8).BalancedByMicrobatch(),
      Setup({.tp = 2, .dp = 2, .ep = 2, .etp = 2}).Experts(4).Quick().Float32(),
      Setup({.dp = 4, .ep = 2, .etp = 2}).Experts(4).Quick(),
      Setup({.tp = 2, .dp = 2, .etp = 2}).Experts(4).Float32(),
      Setup({.tp = 3, .ep = 1, .etp = 3}).Heads("language", 6, 1).Experts(4),
      Setup({.tp = 2, .dp = 2, .ep = 2}).Experts(4).WithoutSp("language").Quick().Float32(),
      Setup({.tp = 2, .dp = 2, .ep = 4})
          .Experts(4)
          .SharedExpert()
          .WithoutSp("language")
          .BalancedByMicrobatch(),
      Setup({.tp = 2, .dp = 2, .ep = 4}).Experts(4).SharedExpert().Quick().Float32().Portable(),
      Setup({.tp = 2, .dp = 2, .ep = 2, .etp = 2}).Experts(4).SharedExpert().Float32(),
      Setup({.dp = 4, .ep = 4}).Experts(4).BalancedByMicrobatch().Quick().Float32(),
      Setup({.dp = 4, .ep = 2}).Experts(4).BalancedByMicrobatch().Float32(),
      Setup({.pp = 2, .dp = 2, .ep = 2}).Experts(4).BalancedByMicrobatch().Quick(),
      Setup({.tp = 2, .cp = 2, .ep = 2}).Experts(4).Quick().Float32(),
      Setup({.cp = 2, .dp = 2, .ep = 4}).Experts(4).Quick().Float32(),
      Setup({.cp = 2, .dp = 2, .ep = 2}).Experts(4).Gathered().BalancedByMicrobatch(),
      Setup({.cp = 3, .dp = 2, .ep = 6}).Experts(6).SharedExpert().Float32(),
      Setup({.tp = 2, .cp = 2, .dp = 2, .ep = 2, .etp = 2}).Experts(4).Float32(),
      Setup({.pp = 2, .dp = 2, .ep = 2}).Experts(4).Quick().Float32().Portable(),
      Setup({.pp = 3, .dp = 2, .ep = 2}).Experts(4).ExpertsEvery(2).TiedHead().Quick(),
      Setup({.pp = 2, .dp = 4, .ep = 4}).Experts(4).ZbH1().Quick().Float32().Portable(),
      Setup({.dp = 2, .ep = 2}).Experts(4).ZbH1().Portable(),
      Setup({.pp = 2, .dp = 2, .ep = 2}).Experts(4).SharedExpert().ZbH1().TiedHead(),
      Setup({.pp = 2, .dp = 2, .ep = 2}).Experts(4).Gpipe().Quick(),
      Setup({.pp = 2, .dp = 2, .ep = 2})
          .Experts(4)
          .Layers("language", 6)
          .Microbatches(4)
          .Interleaved(3)
          .Quick(),
      Setup({.pp = 2, .dp = 2, .ep = 2})
          .Experts(4)
          .Recomputed("language", Recompute{LayerPart::kLayer})
          .Quick(),
      Setup({.tp = 2, .dp = 2, .ep = 4})
          .Experts(4)
          .SharedExpert()
          .Recomputed("language", Recompute{LayerPart::kAttention})
          .Float32(),
      Setup({.dp = 4, .ep = 2}).Experts(4).Sharded().Quick().Float32(),
      Setup({.dp = 4, .ep = 2}).Experts(4).Sharded(2).Quick().Float32(),
      Setup({.dp = 4, .ep = 4}).Experts(4).Sharded(2),
      Setup({.tp = 2, .dp = 4, .ep = 2}).Experts(4).Sharded(2).TiedHead().Float32(),
      Setup({.cp = 2, .dp = 2, .ep = 2}).Experts(4).Sharded(4),
      Setup({.pp = 2, .dp = 2, .ep = 2}).Experts(4).Sharded().ZbH1(),
      Setup({.dp = 2, .ep = 2}).Context(200).Experts(4).Packed().Quick().Float32(),
      Setup({.cp = 2, .dp = 2, .ep = 4}).Context(250).Experts(4).Packed().BalancedByMicrobatch(),
      Setup({.dp = 2, .ep = 2}).Experts(4).ExpertsEvery(3).Float32(),
      Setup({.tp = 2, .dp = 2, .ep = 2})
          .Experts(4)
          .SharedExpert()
          .Adapters("language", 0.3)
          .Quick(),
      Setup({.dp = 2, .ep = 2}).Experts(4).NoClip().Samples(1).Microbatches(6),
      Setup(Disjoint({.dp = 2}), {.dp = 2, .ep = 2}).Experts(4).Recipe(),
      Setup({.dp = 2, .ep = 2}).Experts(4).Context(24),
      Setup({.dp = 2, .ep = 2}).Experts(4).PipelineFastest("language"),
      Setup(Disjoint({.dp = 2}), {.dp = 2, .ep = 2}).Experts(4).Quick().Float32().Portable(),
      Setup(Disjoint({.dp = 4}), {.dp = 2, .ep = 2}).Experts(4).Quick().Float32(),
      Setup(Disjoint({.dp = 2}), {.tp = 2, .dp = 2, .ep = 4}).Experts(8).Float32(),
      Setup(Disjoint({.cp = 2}), {.cp = 2, .dp = 2, .ep = 2}).Experts(4).Quick().Float32(),
      Setup(Disjoint({.tp = 2}), {.pp = 2, .dp = 2, .ep = 2}).Experts(4).Frozen("vision"),
      Setup(Disjoint({.dp = 2}), {.dp = 2, .ep = 2}).Experts(4).Frozen("language").Quick(),
      Setup(Disjoint({.dp = 2}), {.pp = 2, .dp = 2, .ep = 2}).Experts(4).Credits(1).Microbatches(6),
      Setup(Disjoint({.dp = 2}), {.pp = 2, .dp = 2, .ep = 2}).Experts(4).Credits(1).ZbH1().Quick(),
      Setup(Disjoint({.dp = 3}), {.dp = 2, .ep = 2}).Experts(4).Tiles().ProjectorAtLanguage(),
      Setup(Colocated({.dp = 4}), {.dp = 4, .ep = 4}).Experts(4).Quick().Float32(),
      Setup(Colocated({.dp = 4}), {.pp = 2, .dp = 2, .ep = 2}).Experts(4).Window(2).Quick(),
      Setup(Colocated({.tp = 2, .dp = 2}), {.pp = 2, .dp = 2, .ep = 2})
          .Experts(4)
          .Window(1)
          .ZbH1()
          .Float32(),
      Setup(Colocated({.cp = 2, .dp = 2}), {.tp = 2, .dp = 2, .ep = 4})
          .Experts(4)
          .Offloaded("vision", Offload::kState)
          .Sharded(),
      Setup(Inline(), {.dp = 2, .ep = 2}).Experts(4).Quick().Float32(),
      Setup(Inline(), {.tp = 2, .pp = 2, .dp = 2, .ep = 2}).Experts(4).SharedExpert().Float32(),
      Setup(Disjoint({.dp = 2}), Disjoint({.tp = 2}), {.dp = 2, .ep = 2}).Experts(4).Quick(),
      Setup(Colocated({.dp = 4}), Disjoint({.cp = 2}), {.tp = 2, .dp = 2, .ep = 4})
          .Experts(4)
          .Float32(),
      Setup(Colocated({.dp = 4}), Disjoint(), {.pp = 2, .dp = 2, .ep = 2})
          .Experts(4)
          .Window(2)
          .Microbatches(4)
          .Credits(1)
          .Quick(),
  };
}

}  // namespace troupe
