#include "cli/doctor/meeting.hpp"

#include <utility>

#include "cli/doctor/parts.hpp"

namespace troupe {

DoctorOutcome MeetAndMeasure(DoctorMember member) {
  Joined joined;
  try {
    joined = Join(member.key, member.join);
  } catch (const JoinError& e) {
    member.own.push_back(CheckMeeting({e.what(), e.fault}));
    return {std::move(member.own), true, false};
  }
  return member.self == 0 ? MeasureAsFirst(member, std::move(joined))
                          : AnswerAsMember(member, std::move(joined));
}

}  // namespace troupe
