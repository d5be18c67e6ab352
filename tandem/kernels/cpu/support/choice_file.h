#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::cpu {

/// What was measured for a class of problems: each candidate with its seconds (negative: it could
/// not run), and the one to use.
struct MeasuredChoice {
  std::string chosen;
  std::vector<std::pair<std::string, double>> times;
};
/// By problem ("matmul float nn 512+ …") and threads.
using MeasuredChoices = std::map<std::pair<std::string, int>, MeasuredChoice>;

/// The text of a file of choices for one machine. Its first line names the format's version, its
/// second the machine, its last how many entries there are.
std::string write_choices(const MeasuredChoices& choices, std::string_view machine);

/// The reverse. Throws InvalidArgumentError saying what is wrong; a file for another machine or of
/// another version is wrong too.
MeasuredChoices read_choices(std::string_view text, std::string_view machine);

/// Processor, instruction set in use, and versions of Tandem and of the libraries that multiply: a
/// choice holds where all of them are the same.
const std::string& machine_name();

/// "FOLDER/kernel-choices-1-HASH.txt" for a machine.
std::string choices_path(const std::string& folder, std::string_view machine);

}  // namespace tandem::cpu
