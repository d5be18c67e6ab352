#pragma once

#include <map>
#include <string>
#include <string_view>

namespace tandem::fs {

/// The variable's value; empty where it is not set.
std::string environment(const char* name);

/// A path in the home folder; empty where that is unknown.
std::string in_home(std::string_view path);

/// The sections of a file as ~/.aws/config has them, and the settings of each. A setting within
/// another one, "s3 =" with indented lines, is called "s3.addressing_style". What cannot be
/// understood is skipped, as by Amazon's own tools.
using Sections = std::map<std::string, std::map<std::string, std::string>>;
Sections parse_sections(std::string_view text);

/// A text without white space at its ends.
std::string_view trim(std::string_view text);

/// Seconds since 1970 of "2026-11-24T05:00:00Z"; 0 for what is no such time.
long long parse_time(std::string_view text);

}  // namespace tandem::fs
