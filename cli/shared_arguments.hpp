// Options that several verbs share.
#pragma once

#include "app/cluster_run.hpp"

namespace CLI {
class App;
}

namespace troupe {

/// Adds --local.
void AddLocalArguments(CLI::App& app, ClusterArguments& arguments);

/// Adds --resume.
void AddResumeArgument(CLI::App& app, ClusterArguments& arguments);

/// Adds --steps and --dtype.
void AddVerifyArguments(CLI::App& app, WorkArguments& arguments);

/// Adds all member options but --node and --join, whose help differs by verb.
void AddMemberArguments(CLI::App& verb, MemberArguments& arguments);

}  // namespace troupe
