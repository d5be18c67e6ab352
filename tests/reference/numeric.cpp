#include "tests/reference/numeric.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "tests/reference/adapter.h"

namespace reference {
namespace {

struct Precision {
  std::string dtype;
  double step, tolerance;
};

bool is_real(const std::string& dtype) { return dtype == "float" || dtype == "double"; }

/// Central differences need all that is differentiated to be float or double.
bool can_check(const Case& c) {
  if (!c.numeric) return false;
  for (const Value* value : c.call.flat()) {
    if ((is_floating(value->dtype) || is_complex(value->dtype)) && !is_real(value->dtype))
      return false;
  }
  return std::all_of(c.upstream.begin(), c.upstream.end(), [](const Value& value) {
    return value.dtype.empty() || is_real(value.dtype);
  });
}

void to_double(nlohmann::json& value) {
  if (value.is_array()) {
    for (auto& item : value) to_double(item);
  } else if (value == "float") {
    value = "double";
  }
}

void to_double(std::map<std::string, Attribute>& attributes) {
  for (auto& [name, attribute] : attributes) {
    if (attribute.type == "type" || attribute.type == "list(type)") to_double(attribute.value);
  }
}

Value converted(const Value& value, const std::string& dtype) {
  return value.dtype.empty() ? value : from_numbers(dtype, value.shape, numbers(value));
}

double weighted_sum(const Call& call, const std::vector<Value>& upstream) {
  const Result result = run(call, Mode::kEager);
  double sum = 0;
  for (std::size_t i = 0; i < upstream.size(); ++i) {
    if (upstream[i].dtype.empty()) continue;
    const auto weights = numbers(upstream[i]), outputs = numbers(result.outputs.at(i));
    for (std::size_t k = 0; k < weights.size(); ++k) sum += weights[k].real() * outputs[k].real();
  }
  return sum;
}

Value& flat_input(Call& call, std::size_t index) {
  for (Input& input : call.inputs) {
    if (index < input.values.size()) return input.values[index];
    index -= input.values.size();
  }
  throw std::out_of_range("no such input");
}

std::vector<double> differences(Call call, std::size_t input, const std::vector<Value>& upstream,
                                double step) {
  Value& value = flat_input(call, input);
  const Value original = value;
  const auto elements = numbers(original);
  std::vector<double> result;
  for (std::size_t k = 0; k < elements.size(); ++k) {
    double ends[2];
    for (int side = 0; side < 2; ++side) {
      auto changed = elements;
      changed[k] += side == 0 ? step : -step;
      value = from_numbers(original.dtype, original.shape, changed);
      ends[side] = weighted_sum(call, upstream);
    }
    result.push_back((ends[0] - ends[1]) / (2 * step));
  }
  return result;
}

std::string compare(const Value& gradient, const std::vector<double>& expected, std::size_t input,
                    double tolerance) {
  std::vector<std::complex<double>> actual(expected.size());
  if (!gradient.dtype.empty()) actual = numbers(gradient);
  if (actual.size() != expected.size())
    return "the gradient in double has another shape: " + gradient.type();
  double scale = 1;
  for (const double value : expected) scale = std::max(scale, std::abs(value));
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const double apart = std::abs(actual[k].real() - expected[k]);
    if (apart <= tolerance * scale) continue;
    std::ostringstream out;
    out << "gradient of input " << input << ", element " << k << ": " << actual[k].real()
        << ", central differences give " << expected[k];
    return out.str();
  }
  return "";
}

}  // namespace

Call in_double(const Call& call) {
  Call result = call;
  for (Input& input : result.inputs) {
    for (Value& value : input.values) {
      if (value.dtype != "float") continue;
      const bool literal = value.literal;
      value = converted(value, "double");
      value.literal = literal;
    }
  }
  to_double(result.attributes);
  to_double(result.inferred);
  return result;
}

std::string numeric_difference(const Case& c) {
  if (!can_check(c)) return "";
  const Precision precision =
      c.numeric_in_float ? Precision{"float", 1e-2, 3e-2} : Precision{"double", 1e-6, 1e-5};
  const Call call = c.numeric_in_float ? c.call : in_double(c.call);
  std::vector<Value> upstream;
  for (const Value& value : c.upstream) upstream.push_back(converted(value, precision.dtype));
  const Gradients gradients = differentiate(call, upstream, nullptr, Mode::kEager);
  const auto inputs = call.flat();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_real(inputs[i]->dtype)) continue;
    const auto expected = differences(call, i, upstream, precision.step);
    const std::string text = compare(gradients.gradients.at(i), expected, i, precision.tolerance);
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace reference
