#pragma once

#include <initializer_list>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/export.h"

namespace tandem::keras {

/// Loss and metrics by name, in order: what evaluate returns and callbacks see.
class TANDEM_EXPORT Logs {
 public:
  Logs() = default;
  Logs(std::initializer_list<std::pair<std::string, double>> entries) : entries_(entries) {}

  /// Throws NotFoundError naming what there is; FailedPreconditionError for what was not computed.
  double operator[](std::string_view name) const;
  std::optional<double> find(std::string_view name) const;
  /// Sets or replaces.
  void set(const std::string& name, double value);
  /// There is no value, since a device only takes the time that computing it would
  /// (docs/devices-emulated.md): "loss: not computed".
  void set_unmaterialized(const std::string& name) { unmaterialized_.push_back(name); }
  const std::vector<std::string>& unmaterialized() const { return unmaterialized_; }
  bool empty() const { return entries_.empty() && unmaterialized_.empty(); }
  const std::vector<std::pair<std::string, double>>& entries() const { return entries_; }
  /// "accuracy: 0.9710 - loss: 0.1103", as the progress bar shows them.
  std::string to_string() const;

 private:
  std::vector<std::pair<std::string, double>> entries_;
  std::vector<std::string> unmaterialized_;
};
TANDEM_EXPORT std::ostream& operator<<(std::ostream& out, const Logs& logs);

/// What fit returns: the logs of each epoch.
///
///     td::keras::History history = model.fit(train, {.epochs = 5});
///     double last = history["val_accuracy"].back();
class TANDEM_EXPORT History {
 public:
  /// The numbers of the epochs, the first being 0.
  const std::vector<int>& epochs() const { return epochs_; }
  /// One value for each epoch that had one. Throws as Logs does.
  const std::vector<double>& operator[](std::string_view name) const;
  bool contains(std::string_view name) const;
  /// Every entry by name, as Keras' `History.history`; what was not computed is not in it.
  std::map<std::string, std::vector<double>> history() const {
    return {entries_.begin(), entries_.end()};
  }
  /// The entries in the order of the first epoch's logs.
  const std::vector<std::pair<std::string, std::vector<double>>>& entries() const {
    return entries_;
  }

  void append(int epoch, const Logs& logs);

 private:
  std::vector<int> epochs_;
  std::vector<std::pair<std::string, std::vector<double>>> entries_;
  std::vector<std::string> unmaterialized_;
};

}  // namespace tandem::keras
