// Faults that tests plant in the library, to see that they are found.
#pragma once

namespace troupe {

/// While it lives, this thread adds products up in the type of their factors, one rounding per
/// term, as libtorch 1.13 may on a CPU.
class PlantShortSums {
 public:
  PlantShortSums();
  ~PlantShortSums();
  PlantShortSums(const PlantShortSums&) = delete;
  PlantShortSums& operator=(const PlantShortSums&) = delete;

 private:
  bool before_;
};

/// While it lives, updates on this thread are applied twice to what this replica updates.
class PlantSecondUpdate {
 public:
  PlantSecondUpdate();
  ~PlantSecondUpdate();
  PlantSecondUpdate(const PlantSecondUpdate&) = delete;
  PlantSecondUpdate& operator=(const PlantSecondUpdate&) = delete;
};

/// While it lives, this thread computes with the keys and values that it got from another rank along cp
/// in the exchange before.
class PlantStaleKeyValues {
 public:
  PlantStaleKeyValues();
  ~PlantStaleKeyValues();
  PlantStaleKeyValues(const PlantStaleKeyValues&) = delete;
  PlantStaleKeyValues& operator=(const PlantStaleKeyValues&) = delete;
};

/// While it lives, the samples of this thread's passes see each other: they are one sequence.
class PlantJoinedSamples {
 public:
  PlantJoinedSamples();
  ~PlantJoinedSamples();
  PlantJoinedSamples(const PlantJoinedSamples&) = delete;
  PlantJoinedSamples& operator=(const PlantJoinedSamples&) = delete;
};

/// While it lives, the library computes without oneDNN, as it does on a CPU without AVX-512.
class WithoutOneDnn {
 public:
  WithoutOneDnn();
  ~WithoutOneDnn();
  WithoutOneDnn(const WithoutOneDnn&) = delete;
  WithoutOneDnn& operator=(const WithoutOneDnn&) = delete;

 private:
  bool before_;
};

}  // namespace troupe
