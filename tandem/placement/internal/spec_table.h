#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tandem/device/device_spec.h"

namespace tandem::placement {

/// Device names, each kept once and named by a number, so that nodes can hold and compare them
/// cheaply. 0 is the empty name.
class SpecTable {
 public:
  SpecTable() { specs_.emplace_back(); }

  const DeviceSpec& operator[](int id) const { return specs_[static_cast<std::size_t>(id)]; }
  /// Throws InvalidArgumentError on a malformed name.
  int parse(std::string_view name);
  int intern(const DeviceSpec& spec);

  /// False if a field is said by both and differs.
  bool compatible(int a, int b) const;
  /// What both say together. Where they contradict each other: with `soft` a type or an index
  /// becomes open; else -1 and `problem` says what differs.
  int merge(int a, int b, bool soft, std::string& problem);
  /// `base`, with whatever `over` says in its place.
  int overlay(int base, int over);

 private:
  std::vector<DeviceSpec> specs_;
  std::unordered_map<std::string, int> by_name_;    // as written
  std::unordered_map<std::string, int> canonical_;  // as DeviceSpec prints it
};

}  // namespace tandem::placement
