// What the programs that compute TensorFlow's names in C++ share; api_cases.py is the other side.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tandem/tandem.h"

namespace api_cases {

namespace td = tandem;
using td::Tensor;

inline std::map<std::string, Tensor> found;

// The same numbers on both sides: sin(1.7 i + 0.3 + seed).
inline Tensor numbers(const std::vector<std::int64_t>& shape, double seed = 0) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(std::sin(1.7 * static_cast<double>(i) + 0.3 + seed)));
  return td::reshape(Tensor(values), shape);
}

inline void add(const std::string& name, const std::vector<Tensor>& results) {
  for (std::size_t i = 0; i < results.size(); ++i)
    found[results.size() == 1 ? name : name + " " + std::to_string(i)] = results[i];
}

// The value, in a traced function too, and the gradient.
inline void differentiated(const std::string& name, const std::function<Tensor(Tensor)>& f,
                           const Tensor& x) {
  found[name] = f(x);
  found[name + " traced"] = td::function([&](Tensor t) { return f(t); })(x);
  td::GradientTape tape;
  tape.watch(x);
  found[name + " grad"] = tape.gradient(td::reduce_sum(td::square(f(x))), x);
}

}  // namespace api_cases
