#include "tandem/train/checkpoint_state.h"

#include <charconv>
#include <cstdio>
#include <system_error>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/paths.h"

// The text form of protocol buffers, as far as this message needs it: `field: value`, with strings
// in quotes and octal, hexadecimal and letter escapes.
// https://protobuf.dev/reference/protobuf/textformat-spec/

namespace tandem::train {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  CheckpointState parse() {
    CheckpointState state;
    for (skip_space(); !rest_.empty(); skip_space()) {
      const std::string field = take_word();
      skip_space();
      if (!take(':')) fail("a ':' is missing behind " + field);
      skip_space();
      if (field == "model_checkpoint_path") {
        state.model_checkpoint_path = take_string();
      } else if (field == "all_model_checkpoint_paths") {
        state.all_model_checkpoint_paths.push_back(take_string());
      } else if (field == "all_model_checkpoint_timestamps") {
        state.all_model_checkpoint_timestamps.push_back(take_number());
      } else if (field == "last_preserved_timestamp") {
        state.last_preserved_timestamp = take_number();
      } else {
        fail("the field " + field + " is unknown");
      }
    }
    return state;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw DataLossError(
        cat(name_, ":", line_, ": ", why, ". The file is damaged, or no list of checkpoints."));
  }
  void skip_space() {
    while (!rest_.empty()) {
      if (rest_.front() == '#') {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (rest_.front() == '\n' || rest_.front() == ' ' || rest_.front() == '\t' ||
                 rest_.front() == '\r' || rest_.front() == ',' || rest_.front() == ';') {
        line_ += rest_.front() == '\n';
        rest_.remove_prefix(1);
      } else {
        return;
      }
    }
  }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string take_word() {
    std::size_t size = 0;
    while (size < rest_.size() &&
           (rest_[size] == '_' || (rest_[size] >= 'a' && rest_[size] <= 'z'))) {
      ++size;
    }
    if (size == 0) fail("the name of a field is expected");
    const std::string word(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return word;
  }
  double take_number() {
    double value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) fail("a number is expected");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  // Strings side by side are one.
  std::string take_string() {
    std::string text;
    bool any = false;
    for (;; skip_space()) {
      const char quote = rest_.empty() ? '\0' : rest_.front();
      if (quote != '"' && quote != '\'') break;
      any = true;
      rest_.remove_prefix(1);
      while (!take(quote)) {
        if (rest_.empty() || rest_.front() == '\n') fail("a string has no end");
        const char c = rest_.front();
        rest_.remove_prefix(1);
        text += c == '\\' ? take_escaped() : c;
      }
    }
    if (!any) fail("a string in quotes is expected");
    return text;
  }
  char take_escaped() {
    if (rest_.empty()) fail("a string has no end");
    const char c = rest_.front();
    rest_.remove_prefix(1);
    constexpr std::string_view kLetters = "abfnrtv", kMeanings = "\a\b\f\n\r\t\v";
    if (const std::size_t at = kLetters.find(c); at != std::string_view::npos) return kMeanings[at];
    if (c == 'x' || c == 'X') return take_code(16, 2, 0);
    if (c >= '0' && c <= '7') return take_code(8, 2, c - '0');
    return c;
  }
  char take_code(int base, int max_digits, int value) {
    for (int i = 0; i < max_digits && !rest_.empty(); ++i) {
      int digit = 0;
      if (std::from_chars(rest_.data(), rest_.data() + 1, digit, base).ec != std::errc()) break;
      value = value * base + digit;
      rest_.remove_prefix(1);
    }
    return static_cast<char>(value);
  }

  std::string_view rest_;
  const std::string& name_;
  int line_ = 1;
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20 || code >= 0x7f) {
      char octal[5];
      std::snprintf(octal, sizeof octal, "\\%03o", code);
      out += octal;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string state_path(const std::string& directory, const std::string& filename) {
  return fs::join_path(directory, filename);
}

bool is_absolute(const std::string& path) {
  return path.starts_with('/') || path.find("://") != std::string::npos;
}

std::string joined(const std::string& directory, const std::string& path) {
  return is_absolute(path) ? path : state_path(directory, path);
}

// Relative to the folder where it lies below it, so that the folder can be moved.
std::string relative(const std::string& directory, const std::string& path) {
  const std::string begin =
      directory.empty() || directory.back() == '/' ? directory : directory + "/";
  return !begin.empty() && path.starts_with(begin) ? path.substr(begin.size()) : path;
}

std::string number_text(double value) {
  char text[400];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed).ptr;
  std::string number(text, end);
  // As in TensorFlow's files; a whole number is one too.
  return number.find('.') == std::string::npos ? number + ".0" : number;
}

}  // namespace

CheckpointState parse_checkpoint_state(std::string_view text, const String& name) {
  return Parser(text, name).parse();
}

std::optional<CheckpointState> get_checkpoint_state(const String& directory,
                                                    const String& latest_filename) {
  const std::string path = state_path(directory, latest_filename);
  if (!fs::exists(path)) return std::nullopt;
  CheckpointState state = parse_checkpoint_state(fs::read_file(path), path);
  if (state.model_checkpoint_path.empty()) {
    throw DataLossError(cat(path,
                            ": no model_checkpoint_path is in it. The file is damaged, or no "
                            "list of checkpoints."));
  }
  state.model_checkpoint_path = joined(directory, state.model_checkpoint_path);
  for (std::string& each : state.all_model_checkpoint_paths) each = joined(directory, each);
  if (state.all_model_checkpoint_paths.empty() ||
      state.all_model_checkpoint_paths.back() != state.model_checkpoint_path) {
    std::erase(state.all_model_checkpoint_paths, state.model_checkpoint_path);
    state.all_model_checkpoint_paths.push_back(state.model_checkpoint_path);
  }
  return state;
}

void update_checkpoint_state(const String& directory, const CheckpointState& state,
                             const String& latest_filename) {
  std::string text = cat(
      "model_checkpoint_path: ", quoted(relative(directory, state.model_checkpoint_path)), "\n");
  for (const std::string& path : state.all_model_checkpoint_paths)
    text += cat("all_model_checkpoint_paths: ", quoted(relative(directory, path)), "\n");
  for (const double time : state.all_model_checkpoint_timestamps)
    text += cat("all_model_checkpoint_timestamps: ", number_text(time), "\n");
  if (state.last_preserved_timestamp != 0)
    text += cat("last_preserved_timestamp: ", number_text(state.last_preserved_timestamp), "\n");
  fs::write_file(state_path(directory, latest_filename), text);
}

std::optional<std::string> latest_checkpoint(const String& directory,
                                             const String& latest_filename) {
  const std::optional<CheckpointState> state = get_checkpoint_state(directory, latest_filename);
  if (!state || !fs::exists(state->model_checkpoint_path + ".index")) return std::nullopt;
  return state->model_checkpoint_path;
}

}  // namespace tandem::train
