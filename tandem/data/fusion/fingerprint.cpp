#include "tandem/data/fusion/fingerprint.h"

#include <cstdint>

namespace tandem::data {

std::string description(const DatasetBase& dataset) {
  const auto inputs = dataset.inputs();
  std::string all = cat(dataset.name(), "(", dataset.parameters(), ")");
  // What follows from functions is left out: finding it out may run them.
  if (inputs.empty())
    all += cat(" ", to_string(dataset.element_spec()), " ", dataset.cardinality());
  if (inputs.empty()) return all;
  all += " [";
  for (const DatasetBase* input : inputs) all += description(*input) + " ";
  return all + "]";
}

std::string fingerprint(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[(hash >> shift) & 15];
  return digits;
}

}  // namespace tandem::data
