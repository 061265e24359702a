// The two sides of the doctor's meeting.
#pragma once

#include <chrono>

#include "cli/doctor/meeting.hpp"

namespace troupe {

/// Time for an answer that needs no network except the connection itself.
inline constexpr std::chrono::seconds kAnswerTime{30};

DoctorOutcome MeasureAsFirst(const DoctorMember& member, Joined joined);
DoctorOutcome AnswerAsMember(const DoctorMember& member, Joined joined);

}  // namespace troupe
