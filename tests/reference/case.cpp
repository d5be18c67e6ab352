#include "tests/reference/case.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include <zlib.h>

namespace reference {
namespace {

constexpr int kFormat = 1;

std::map<std::string, Attribute> attributes_of(const nlohmann::json& record) {
  std::map<std::string, Attribute> result;
  for (const auto& [name, attribute] : record.items()) {
    result[name] = {attribute.at("type").get<std::string>(), attribute.at("value")};
  }
  return result;
}

Input input_of(const nlohmann::json& record) {
  Input input;
  if (record.contains("list")) {
    input.kind = Input::Kind::kList;
    input.values = decode_all(record.at("list"));
  } else if (record.contains("variable")) {
    input.kind = Input::Kind::kVariable;
    input.values = {decode(record.at("variable"))};
  } else if (record.contains("reference")) {
    input.kind = Input::Kind::kReference;
    input.values = {decode(record.at("reference"))};
  } else {
    input.values = {decode(record)};
  }
  return input;
}

std::optional<double> number_of(const nlohmann::json& record, const char* key) {
  if (!record.contains(key)) return std::nullopt;
  return record.at(key).get<double>();
}

Case case_of(const nlohmann::json& record, const std::string& family) {
  Case c;
  c.family = family;
  c.id = record.at("id").get<std::string>();
  c.line = record.at("line").get<std::string>();
  c.call.op = record.at("op").get<std::string>();
  c.call.attributes = attributes_of(record.at("attributes"));
  c.call.inferred = attributes_of(record.at("inferred"));
  for (const auto& input : record.at("inputs")) c.call.inputs.push_back(input_of(input));
  if (record.contains("outputs")) c.outputs = decode_all(record.at("outputs"));
  if (record.contains("variables")) c.variables = decode_all(record.at("variables"));
  for (const auto& run : record.value("runs", nlohmann::json::array()))
    c.runs.push_back(decode_all(run));
  c.error = record.value("error", "");
  if (record.contains("gradients")) {
    c.upstream = decode_all(record.at("upstream"));
    c.gradients = decode_all(record.at("gradients"));
  }
  if (record.contains("second")) {
    const auto& second = record.at("second");
    c.second = SecondOrder{decode_all(second.at("upstream")), decode_all(second.at("gradients")),
                           decode_all(second.at("towards_upstream"))};
  }
  c.shapes = record.value("shapes", nlohmann::json());
  c.ignored = record.value("ignore", std::vector<std::size_t>{});
  c.exact = record.value("exact", false);
  c.any_code = record.value("anycode", false);
  c.numeric = !record.value("nonumeric", false);
  c.numeric_in_float = record.value("numeric", "") == "float";
  c.relative = number_of(record, "tol");
  c.absolute = number_of(record, "atol");
  c.ulps = static_cast<int>(record.value("ulps", 0.0));
  return c;
}

}  // namespace

std::vector<const Value*> Call::flat() const {
  std::vector<const Value*> result;
  for (const Input& input : inputs) {
    for (const Value& value : input.values) result.push_back(&value);
  }
  return result;
}

bool Case::ignores(std::size_t output) const {
  return std::find(ignored.begin(), ignored.end(), output) != ignored.end();
}

Tolerance Case::tolerance(const std::string& dtype, double factor) const {
  Tolerance result = usual_tolerance(dtype, factor);
  if (relative) result.relative = *relative;
  if (absolute) result.absolute = *absolute;
  result.exact = exact;
  result.ulps = ulps;
  return result;
}

std::vector<nlohmann::json> read_lines(const std::filesystem::path& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  std::string text;
  char block[1 << 16];
  int count = 0;
  while ((count = gzread(file.get(), block, sizeof(block))) > 0)
    text.append(block, static_cast<std::size_t>(count));
  if (count < 0) throw std::runtime_error(path.string() + " is damaged");
  std::vector<nlohmann::json> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(start),
                                          text.begin() + static_cast<std::ptrdiff_t>(end)));
    start = end + 1;
  }
  return lines;
}

std::vector<Case> read_cases(const std::filesystem::path& path) {
  const std::vector<nlohmann::json> lines = read_lines(path);
  if (lines.empty() || lines[0].value("format", 0) != kFormat) {
    throw std::runtime_error(path.string() + " is no file of cases of format " +
                             std::to_string(kFormat));
  }
  if (lines[0].at("cases").get<std::size_t>() != lines.size() - 1) {
    throw std::runtime_error(path.string() +
                             " is cut: its header counts other cases than it holds");
  }
  const auto family = lines[0].at("family").get<std::string>();
  std::vector<Case> cases;
  for (std::size_t i = 1; i < lines.size(); ++i) cases.push_back(case_of(lines[i], family));
  return cases;
}

}  // namespace reference
