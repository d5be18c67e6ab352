#include "tandem/distribute/internal/wire/error_text.h"

#include <algorithm>

#include "tandem/core/error.h"

namespace tandem::distribute {

std::string with_node_lines(std::string_view message) {
  constexpr std::string_view kBegin = "[[{{node ";
  std::string text;
  for (;;) {
    const std::size_t at = message.find(kBegin);
    const std::size_t name_end =
        at == std::string_view::npos ? at : message.find("}}", at + kBegin.size());
    if (name_end == std::string_view::npos) return text.append(message);
    const std::size_t line_end = std::min(message.find('\n', at), message.size());
    // What is between the name and the brackets, and after them: " (MatMul)", " inputs: …".
    std::string rest(message.substr(name_end + 2, line_end - name_end - 2));
    if (const std::size_t close = rest.find("]]"); close != std::string::npos) rest.erase(close, 2);
    text.append(message.substr(0, at));
    while (!text.empty() && (text.back() == '\t' || text.back() == ' ')) text.pop_back();
    text += cat("\t ", message.substr(at, name_end + 2 - at), "]]", rest);
    message.remove_prefix(line_end);
  }
}

std::exception_ptr error_from_task(const std::exception_ptr& error, const std::string& task) {
  const std::string message = with_node_lines(message_of(error));
  try {
    throw_error(code_of(error), task.empty() ? message : cat("From ", task, ":\n", message));
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace tandem::distribute
