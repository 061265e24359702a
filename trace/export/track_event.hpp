// Field numbers of Perfetto's trace packets that we write and check
// (protos/perfetto/trace/track_event/*.proto).
#pragma once

namespace troupe::track_event {

inline constexpr int kPacket = 1;  ///< of the trace

namespace packet {
inline constexpr int kTimestamp = 8;
inline constexpr int kSequence = 10;
inline constexpr int kEvent = 11;
inline constexpr int kDescriptor = 60;
}  // namespace packet

namespace descriptor {
inline constexpr int kUuid = 1;
inline constexpr int kName = 2;
inline constexpr int kProcess = 3;
inline constexpr int kThread = 4;
inline constexpr int kParent = 5;
inline constexpr int kCounter = 8;
inline constexpr int kChildOrdering = 11;
inline constexpr int kSiblingRank = 12;
inline constexpr int kSiblingMerge = 15;
inline constexpr int kExplicit = 3;  ///< value of kChildOrdering
inline constexpr int kNoMerge = 2;   ///< value of kSiblingMerge
inline constexpr int kUnit = 3;      ///< of the counter
inline constexpr int kUnitName = 6;
inline constexpr int kAxis = 7;
inline constexpr int kCount = 2;  ///< values of kUnit
inline constexpr int kBytes = 3;
}  // namespace descriptor

namespace event {
inline constexpr int kAnnotation = 4;
inline constexpr int kType = 9;
inline constexpr int kTrack = 11;
inline constexpr int kCategory = 22;
inline constexpr int kName = 23;
inline constexpr int kCounterValue = 30;
inline constexpr int kFlow = 47;
inline constexpr int kTerminatingFlow = 48;
inline constexpr int kBegin = 1;  ///< values of kType
inline constexpr int kEnd = 2;
inline constexpr int kInstant = 3;
inline constexpr int kCounter = 4;
}  // namespace event

namespace annotation {
inline constexpr int kInt = 4;
inline constexpr int kText = 6;
inline constexpr int kName = 10;
}  // namespace annotation

}  // namespace troupe::track_event
