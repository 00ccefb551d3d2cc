// SPDX-License-Identifier: Apache-2.0
// The conformance suite on the stores that need no other program.
#include "common/objectstore/filesystem_object_store.h"
#include "common/objectstore/memory_object_store.h"
#include "common/objectstore/prefix_object_store.h"
#include "tests/conformance/object_store_conformance.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Memory, ObjectStoreConformance,
    testing::Values(StoreUnderTest{.name = "whole",
                                   .open = [] { return std::make_unique<MemoryObjectStore>(); }},
                    StoreUnderTest{.name = "prefix",
                                   .open =
                                       [] {
                                         return std::make_unique<PrefixObjectStore>(
                                             std::make_unique<MemoryObjectStore>(), "t/");
                                       }}),
    StoreName);

INSTANTIATE_TEST_SUITE_P(Files, ObjectStoreConformance,
                         testing::Values(StoreUnderTest{
                             .name = "folder",
                             .open =
                                 [] {
                                   return std::make_unique<FilesystemObjectStore>(MakeTempDir() +
                                                                                  "/not/yet/there");
                                 }}),
                         StoreName);

}  // namespace
}  // namespace lambdadnn
