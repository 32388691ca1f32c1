/*
 * frame_package: the package, name space, crate or module that a function's name begins with, which
 * is what its colour stands for; as the page has it (packageOf in web/src/model/frame_colours.ts;
 * tests/frame_packages.txt holds for both). Threads: any.
 */
#ifndef LIB_PROFILE_PICTURE_FRAME_PACKAGE_H
#define LIB_PROFILE_PICTURE_FRAME_PACKAGE_H

#include "lib/base/buf.h"

struct frame;

/* Else the name of its binary, else the folder of its source, else empty. A part of the frame's
 * texts. */
struct span frame_package(const struct frame *frame);

/* A path's last part. */
struct span frame_base_name(struct span path);

#endif
