// Faults that tests plant in the library, to see that they are found.
#pragma once

#include <cstdint>

namespace troupe {

enum class LibraryFault : std::uint8_t {
  kShortSums,     ///< adds products up in the type of their factors, as libtorch 1.13 may on a CPU
  kSecondUpdate,  ///< applies an update twice to the part of the state that this rank updates
  kStaleKeyValues,  ///< computes with keys and values that another rank sent in the exchange before
  kSwappedExperts,  ///< gives the tokens of the first two experts of a rank to each other
  kUnsharedBalance,  ///< balances experts by the tokens of a rank alone
  kJoinedSamples,    ///< lets the samples of a pass see each other, as one sequence
};

/// While it lives, code on this thread has the fault.
class PlantLibraryFault {
 public:
  explicit PlantLibraryFault(LibraryFault fault);
  ~PlantLibraryFault();
  PlantLibraryFault(const PlantLibraryFault&) = delete;
  PlantLibraryFault& operator=(const PlantLibraryFault&) = delete;

 private:
  std::uint32_t before_;
};

/// Whether this thread has the fault.
bool HasLibraryFault(LibraryFault fault);

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
