#pragma once

namespace tandem::cli {

/// Runs the command that the arguments name. Returns 0 when it is done, or when help was asked for,
/// 1 where the answer is no (two files differ), and 2, having said why, for wrong usage; throws
/// what the command throws.
int run_command_line(int argc, char** argv);

}  // namespace tandem::cli
