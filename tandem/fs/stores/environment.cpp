#include "tandem/fs/stores/internal/environment.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace tandem::fs {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string in_home(std::string_view path) {
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/" + std::string(path);
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

Sections parse_sections(std::string_view text) {
  Sections sections;
  std::map<std::string, std::string>* section = nullptr;
  std::string outer;  // the setting that indented lines belong to
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::string_view content = trim(line);
    if (content.empty() || content[0] == '#' || content[0] == ';') continue;
    if (content.front() == '[' && content.back() == ']') {
      section = &sections[std::string(trim(content.substr(1, content.size() - 2)))];
      outer.clear();
      continue;
    }
    const std::size_t equals = content.find('=');
    if (!section || equals == std::string_view::npos) continue;
    const std::string name(trim(content.substr(0, equals)));
    const std::string_view value = trim(content.substr(equals + 1));
    const bool indented = line[0] == ' ' || line[0] == '\t';
    if (!indented) outer = value.empty() ? name : "";
    (*section)[indented && !outer.empty() ? outer + "." + name : name] = value;
  }
  return sections;
}

long long parse_time(std::string_view text) {
  std::tm parts{};
  const std::string copy(text);
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d", &parts.tm_year, &parts.tm_mon,
                  &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &parts.tm_sec) != 6) {
    return 0;
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  const std::time_t time = timegm(&parts);
  return time < 0 ? 0 : time;
}

}  // namespace tandem::fs
