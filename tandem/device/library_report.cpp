#include "tandem/device/library_report.h"

#include "tandem/device/device.h"

namespace tandem {

LibraryReport::~LibraryReport() = default;

std::string libraries_of(const Backend& backend) {
  const auto* report = dynamic_cast<const LibraryReport*>(&backend);
  return report ? report->libraries() : std::string();
}

}  // namespace tandem
