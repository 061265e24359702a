// The most memory in use at any time, as malloc counts it.
#pragma once

namespace troupe {

/// From now on; without copies of what has left a device (SideMemoryBytes).
void BeginPeak();
/// Bytes above those that were in use at BeginPeak.
double PeakBytes();

}  // namespace troupe
