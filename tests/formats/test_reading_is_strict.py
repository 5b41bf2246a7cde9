"""Tests that formats read well-formed answers, and reject answers that are nearly well formed."""

import pytest
import torch
from written_lines import Pair

from abacist.formats.config import (
    FORMATS,
    CarryTraceFormatConfig,
    InsertionSortFormatConfig,
    LabelsFormatConfig,
    LongDivisionFormatConfig,
    LongMultiplicationFormatConfig,
    NonRestoringDivisionFormatConfig,
    ParallelFormatConfig,
    PartialProductsFormatConfig,
    PlainFormatConfig,
    ResiduesFormatConfig,
    RunningSumsFormatConfig,
)
from abacist.tasks.config import (
    TASKS,
    ArithmeticConfig,
    ModularAdditionConfig,
    SortingConfig,
)

THREE = ArithmeticConfig(max_digits=3)
SUBTRACT = ArithmeticConfig(operations=("-",), max_digits=3)
MIXED = TASKS["five-operations"]
DIVISIONS = ArithmeticConfig(operations=("//", "%"))
FIXED = {"operand_padding": "fixed", "answer_padding": "fixed"}

PAIRS = {
    pair.name: pair
    for pair in [
        Pair("reversed", SUBTRACT, PlainFormatConfig()),
        Pair("usual", SUBTRACT, FORMATS["usual"]),
        Pair("sign-last", SUBTRACT, PlainFormatConfig(negative="sign-last")),
        Pair("complement", SUBTRACT, FORMATS["complement"]),
        Pair(
            "usual complement",
            SUBTRACT,
            PlainFormatConfig(
                operand_order="usual",
                answer_order="usual",
                negative="complement",
                answer_padding="fixed",
            ),
        ),
        Pair("zero-padded", THREE, FORMATS["zero-padded"]),
        Pair("zero-padded differences", SUBTRACT, FORMATS["zero-padded"]),
        Pair("coupled", THREE, FORMATS["coupled"]),
        Pair("spaced", THREE, FORMATS["spaced"]),
        Pair("random-spaces", THREE, FORMATS["random-spaces"]),
        Pair("no end", THREE, PlainFormatConfig(end="none", start_token=False, **FIXED)),
        Pair("residue digits", ModularAdditionConfig(), FORMATS["zero-padded"]),
        Pair("carry-trace", MIXED, CarryTraceFormatConfig()),
        Pair("running-sums", TASKS["add-many"], RunningSumsFormatConfig(start_token=False)),
        Pair("running-sums, start", TASKS["add-many"], RunningSumsFormatConfig()),
        Pair("long-division", DIVISIONS, LongDivisionFormatConfig(start_token=False)),
        Pair("long-division, start", DIVISIONS, LongDivisionFormatConfig()),
        Pair("partial-products", TASKS["multiply"], PartialProductsFormatConfig(start_token=False)),
        Pair("partial-products, start", TASKS["multiply"], PartialProductsFormatConfig()),
        Pair(
            "long-multiplication",
            TASKS["multiply"],
            LongMultiplicationFormatConfig(start_token=False),
        ),
        Pair("long-multiplication, start", TASKS["multiply"], LongMultiplicationFormatConfig()),
        Pair(
            "non-restoring-division",
            DIVISIONS,
            NonRestoringDivisionFormatConfig(start_token=False),
        ),
        Pair("non-restoring-division, start", DIVISIONS, NonRestoringDivisionFormatConfig()),
        Pair("labels", SortingConfig(), LabelsFormatConfig()),
        Pair("labels, start", SortingConfig(), LabelsFormatConfig(start_token=True)),
        Pair("insertion-sort", SortingConfig(), InsertionSortFormatConfig(start_token=False)),
        Pair("insertion-sort, start", SortingConfig(), InsertionSortFormatConfig()),
        Pair("parallel", THREE, ParallelFormatConfig()),
        Pair("mirrored", THREE, ParallelFormatConfig(mirrored=True)),
        Pair("residues", ModularAdditionConfig(), ResiduesFormatConfig()),
    ]
}


WELL_FORMED = [
        ("reversed", "<start>53-21=32<end>", "23"),
        ("reversed", "<start>21-53=-32<end>", "-23"),
        ("reversed", "<start>21-53=-01<end>", "-10"),
        ("reversed", "<start>21-53=0<end>", "0"),
        ("usual", "<start>35-12=23<end>", "23"),
        ("usual", "<start>12-35=-23<end>", "-23"),
        ("sign-last", "<start>21-53=32-<end>", "-23"),
        ("sign-last", "<start>21-53=32<end>", "23"),
        ("complement", "<start>21-53=77-<end>", "-23"),
        ("complement", "<start>53-21=32<end>", "23"),
        ("complement", "<start>53-35=00<end>", "0"),
        ("complement", "<start>0-999=100-<end>", "-999"),
        ("complement", "<start>0-999=999-<end>", "-1"),
        ("usual complement", "<start>12-35=977-<end>", "-23"),
        ("usual complement", "<start>12-35=023<end>", "23"),
        ("zero-padded", "654+114=8670<end>", "768"),
        ("zero-padded", "001+002=3000<end>", "3"),
        ("zero-padded", "001+002=0000<end>", "0"),
        ("zero-padded differences", "001-002=-100<end>", "-1"),
        ("coupled", "12+05=710<end>", "17"),
        ("spaced", "12 + 34 =46<end>", "46"),
        ("random-spaces", "1 2+ 34 =46<end>", "46"),
        ("no end", "654+114=8670", "768"),
        ("residue digits", "095+030=210<end>", "12"),
        ("carry-trace", "123+  45=+800600100000000000", "168"),
        ("carry-trace", "  0- 999=-900900900000000000", "-999"),
        ("carry-trace", "123+  45=+812634100000000099", "168"),  # a wrong trace, a right answer
        ("carry-trace", "  0*   0=+000000000000000000", "0"),
        ("running-sums", "21+43+65=64;201<end>", "102"),
        ("running-sums", "21+43=64<end>", "46"),
        ("running-sums", "0+0+0=0;0<end>", "0"),
        ("running-sums", "21+43+65=99;201<end>", "102"),  # a wrong row, a right answer
        ("running-sums, start", "<start>21+43+65=64;201<end>", "102"),
        ("long-division", "7//3=70:040+110+289-2<end>", "2"),
        ("long-division", "7%3=70:040+110+289-21<end>", "1"),
        ("long-division", "7//3=00:000+100+200+300-3<end>", "3"),  # wrong rows, a right form
        ("long-division, start", "<start>7//3=70:040+110+289-2<end>", "2"),
        ("partial-products", "32*54=511,301<end>", "1035"),
        ("partial-products", "32*0=000<end>", "0"),
        ("partial-products, start", "<start>32*54=511,301<end>", "1035"),
        ("long-multiplication", "32*4=⁰[12]2¹[8]9⁰0<end>", "92"),
        ("long-multiplication", "32*4=⁹[0]0⁹[81]0⁰0<end>", "0"),  # wrong cells, a right form
        ("long-multiplication", "3*54=⁰[15]5¹1⁰[12]3¹1<end>", "135"),
        ("long-multiplication, start", "<start>3*5=⁰[15]5¹1<end>", "15"),
        ("non-restoring-division", "7//3=-0:40-1:10-2:8'9'+9:1'0'-0:<end>", "2"),
        ("non-restoring-division", "7%3=-0:40-1:10-2:8'9'+9:1'0'-0:<end>", "1"),
        ("non-restoring-division", "7//3=-0:00'+9:00'-0:<end>", "0"),  # wrong rows, a right form
        ("non-restoring-division, start", "<start>1%3=-0:8'9'+9:1'0'-0:<end>", "1"),
        ("labels", "a:821,b:9=ba<end>", "ba"),
        ("labels", "a:821,b:9=ab<end>", "ab"),
        ("labels", "a:5=a<end>", "a"),
        ("labels, start", "<start>a:821,b:9,c:9=bca<end>", "bca"),
        ("insertion-sort", "a:821,b:9=a,8>ba<end>", "ba"),
        ("insertion-sort", "a:5=a<end>", "a"),
        ("insertion-sort", "a:10,b:11=a,1~0<ab<end>", "ab"),
        ("insertion-sort", "a:821,b:9=b,3<ab<end>", "ab"),  # a wrong list, a right form
        ("insertion-sort, start", "<start>a:1,b:0,c:0=a,1>ba,0~b1>ca<end>", "bca"),
        ("residues", "95+30=12", "12"),
        ("residues", "95+30=112", "112"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", sorted(PAIRS.keys() - {"parallel", "mirrored"}))
def test_a_well_formed_answer_is_read(name: str) -> None:
    answers = {line: answer for pair, line, answer in WELL_FORMED if pair == name}
    assert answers
    assert dict(zip(answers, PAIRS[name].read_texts(*answers), strict=True)) == answers


MALFORMED: dict[str, dict[str, list[str]]] = {
    "reversed": {
        "no end": ["<start>53-21=32", "<start>53-21=-", "<start>53-21="],
        "nothing": ["<start>53-21=<end>", "<start>53-21=<end>32<end>"],
        "no digits": ["<start>53-21=-<end>"],
        "leading zero": ["<start>53-21=320<end>", "<start>53-21=00<end>", "<start>21-53=-320<end>"],
        "minus zero": ["<start>21-21=-0<end>"],
        "sign at the wrong end": ["<start>21-53=32-<end>"],
        "sign inside": ["<start>21-53=3-2<end>"],
        "two signs": ["<start>21-53=--32<end>", "<start>21-53=-32-<end>"],
        "extra tokens": ["<start>53-21=3=2<end>", "<start>53-21=<start>32<end>"],
        "two answers": ["<start>53-21=32=32<end>"],
        "no equals sign": ["<start>53-2132<end>"],
    },
    "usual": {
        "no end": ["<start>35-12=23"],
        "leading zero": ["<start>35-12=023<end>", "<start>12-35=-023<end>", "<start>1-1=00<end>"],
        "minus zero": ["<start>12-12=-0<end>"],
        "sign at the wrong end": ["<start>12-35=23-<end>"],
    },
    "sign-last": {
        "no end": ["<start>21-53=32-"],
        "leading zero": ["<start>21-53=320-<end>"],
        "minus zero": ["<start>21-21=0-<end>"],
        "sign at the wrong end": ["<start>21-53=-32<end>"],
        "two signs": ["<start>21-53=32--<end>"],
        "only a sign": ["<start>21-53=-<end>"],
    },
    "complement": {
        "no end": ["<start>21-53=77-"],
        "wrong width": [
            "<start>21-53=7-<end>",
            "<start>21-53=779-<end>",
            "<start>53-21=3<end>",
            "<start>53-21=320<end>",
            "<start>53-21=<end>",
        ],
        "sign at the wrong end": ["<start>21-53=-77<end>"],
    },
    "usual complement": {
        "wrong width": [
            "<start>12-35=77-<end>", "<start>12-35=9977-<end>", "<start>35-12=23<end>"
        ],
        "sign at the wrong end": ["<start>12-35=-977<end>"],
    },
    "zero-padded": {
        "no end": ["654+114=8670"],
        "wrong width": [
            "654+114=867<end>", "654+114=86700<end>", "001+002=3<end>", "001+002=<end>"
        ],
        "a sign": ["654+114=+867<end>", "654+114=867+<end>"],
        "an operator": ["654+114=86+0<end>"],
    },
    "zero-padded differences": {
        "wrong width": [
            "001-002=-10<end>", "001-002=-1000<end>", "001-002=100-<end>", "001-002=--00<end>"
        ],
        "minus zero": ["001-001=-000<end>"],
    },
    "coupled": {
        "wrong width": [
            "12+05=71<end>",
            "12+05=7100<end>",
            "1+5=6<end>",
            "1+5=600<end>",
            "123+005=821<end>",
        ],
    },
    "spaced": {
        "a space": [
            "12 + 34 = 46<end>", "12 + 34 =4 6<end>", "12 + 34 =46 <end>", "12 + 34 = <end>"
        ],
        "leading zero": ["12 + 34 =046<end>"],
        "no end": ["12 + 34 =46"],
    },
    "random-spaces": {
        "a space": ["1 2+ 34 = 46<end>", "12+34=4 6<end>", "12+34=46 <end>"],
        "leading zero": ["12+34=046<end>"],
    },
    "no end": {
        "wrong width": ["654+114=867", "654+114=86700", "654+114="],
        "extra tokens": ["654+114=867=", "654+114=86+0"],
    },
    "residue digits": {
        "wrong width": ["095+030=21<end>", "095+030=2100<end>"],
        "no end": ["095+030=210"],
        "an operator": ["095+030=2+0<end>"],
    },
    "carry-trace": {
        "no sign": ["123+  45= 800600100000000000", "123+  45=0800600100000000000"],
        "wrong sign": ["123+  45=*800600100000000000", "123+  45==800600100000000000"],
        "minus zero": ["  0-   0=-000000000000000000"],
        "a letter in the trace": [
            "123+  45=+8+0600100000000000",
            "123+  45=+80-600100000000000",
            "123+  45=+80060010000000000 ",
        ],
        "a letter in the answer": ["123+  45=+ 00600100000000000", "123+  45=+800=00100000000000"],
        "a sign at the wrong end": ["123+  45=80060010000000000+0"],
        "too short": ["123+  45=+80060010000000000", "123+  45=+", "123+  45="],
        "too long": ["123+  45=+8006001000000000000", "123+  45=+800600100000000000+"],
    },
    "long-division": {
        "no end": ["7//3=70:040+110+289-2", "7%3=70:040+110+289-21"],
        "nothing": ["7//3=<end>", "7//3=<end>70:040+110+289-2<end>"],
        "no row that is below": ["7//3=70:040+110+2<end>"],
        "no row brought down": ["7//3=40+110+289-2<end>", "7//3=89-2<end>"],
        "brought down twice": ["7//3=70:070:040+110+289-2<end>"],
        "wrong row width": [
            "7//3=7:040+110+289-2<end>",
            "7//3=700:040+110+289-2<end>",
            "7//3=70:040+110+289-<end>",
            "7//3=70:040+110+9-2<end>",
        ],
        "wrong order of signs": [
            "7//3=70+040+110+289-2<end>",
            "7//3=70-040+110+289-2<end>",
            "7//3=70:040:110+289-2<end>",
        ],
        "wrong count": [
            "7//3=70:140+110+289-2<end>",
            "7//3=70:040+210+289-2<end>",
            "7//3=70:040+110+189-1<end>",
            "7//3=70:040+110+289-3<end>",
            "7//3=70:040+110+289-1<end>",
        ],
        "no count": ["7//3=70:+40+110+289-2<end>"],
        "ten subtractions": [
            "7//3=70:040+140+240+340+440+540+640+740+840+940+:89-9<end>",
        ],
        "no digits": ["7//3=7-:040+110+289-2<end>", "7//3=+0:040+110+289-2<end>"],
        "too few steps": ["75//3=70:040+110+289-2<end>"],
        "too many steps": ["7//3=70:040+110+289-210:089-0<end>"],
        "remainder not asked for": ["7//3=70:040+110+289-21<end>"],
        "remainder missing": ["7%3=70:040+110+289-2<end>"],
        "remainder too wide": ["7%3=70:040+110+289-210<end>"],
        "remainder too narrow": ["75%12=570:360+121+150+269+377+488+599+600-6<end>"],
        "no digit in the remainder": ["7%3=70:040+110+289-2+<end>", "7%3=70:040+110+289-2-<end>"],
        "extra tokens": ["7//3=70:040+110+289-2=<end>", "7//3==70:040+110+289-2<end>"],
        "no equals sign": ["7//370:040+110+289-2<end>"],
    },
    "long-division, start": {
        "no end": ["<start>7//3=70:040+110+289-2"],
        "too many steps": ["<start>7//3=70:040+110+289-210:089-0<end>"],
        "start in a row": ["<start>7//3=7<start>:040+110+289-2<end>"],
    },
    "running-sums": {
        "no end": ["21+43+65=64;201", "21+43+65=64;", "21+43+65="],
        "nothing": ["21+43+65=<end>", "21+43=<end>", "21+43=<end>64<end>"],
        "missing separator": ["21+43+65=64201<end>"],
        "an empty row": ["21+43+65=64;<end>", "21+43+65=;201<end>", "21+43+65+1=64;;301<end>"],
        "too few rows": ["21+43+65=64<end>", "21+43+65=201<end>"],
        "too many rows": ["21+43=64;64<end>", "21+43+65=64;201;201<end>"],
        "leading zero": ["21+43=640<end>", "21+43+65=640;201<end>", "21+43+65=64;2010<end>"],
        "no digits": ["21+43+65=6+4;201<end>", "21+43+65=64;2=01<end>", "21+43==64<end>"],
        "no equals sign": ["21+4364<end>"],
        "no operator": ["21=12<end>"],
    },
    "running-sums, start": {
        "too few rows": ["<start>21+43+65=64<end>"],
        "start in a row": ["<start>21+43=6<start>4<end>"],
    },
    "partial-products": {
        "no end": ["32*54=511,301", "32*54=511,301,"],
        "nothing": ["32*54=<end>", "32*54=<end>511,301<end>"],
        "missing comma": ["32*54=511301<end>", "32*54=5110301<end>"],
        "a comma in the wrong place": ["32*54=51,1301<end>", "32*54=5113,01<end>"],
        "a comma at the end": ["32*54=511,301,<end>"],
        "a comma at the beginning": ["32*54=,511,301<end>"],
        "wrong row width": [
            "32*54=51,301<end>",
            "32*54=5110,301<end>",
            "32*54=511,30<end>",
            "32*54=511,3010<end>",
            "32*54=511,<end>",
        ],
        "too few rows": ["32*54=511<end>"],
        "too many rows": ["32*54=511,301,000<end>", "32*5=511,301<end>"],
        "no digits": ["32*54=5*1,301<end>", "32*54=511,3=1<end>", "32*54==511,301<end>"],
        "no equals sign": ["32*54511,301<end>"],
        "no operator": ["3254=511,301<end>"],
    },
    "partial-products, start": {
        "too few rows": ["<start>32*54=511<end>"],
        "wrong row width": ["<start>32*54=5110,3010<end>"],
        "start in a row": ["<start>32*54=5<start>1,301<end>"],
    },
    "long-multiplication": {
        "no end": ["32*4=⁰[12]2¹[8]9⁰0"],
        "nothing": ["32*4=<end>", "32*4=<end>⁰[12]2¹[8]9⁰0<end>"],
        "no carry": ["32*4=[12]2¹[8]9⁰0<end>", "32*4=0[12]2¹[8]9⁰0<end>"],
        "no product": ["32*4=⁰2¹[8]9⁰0<end>", "32*4=⁰12¹[8]9⁰0<end>", "32*4=⁰¹2¹[8]9⁰0<end>"],
        "no digit": ["32*4=⁰[12]¹[8]9⁰0<end>", "32*4=⁰[12]²¹[8]9⁰0<end>", "32*4=⁰[12]2¹[8]9⁰⁰<end>"],
        "a product in the last cell": ["32*4=⁰[12]2¹[8]9⁰[0]0<end>"],
        "too few cells": ["32*4=⁰[12]2¹1<end>"],
        "too many cells": ["32*4=⁰[12]2¹[8]9⁰[0]0⁰0<end>"],
        "too few rows": ["3*54=⁰[15]5¹1<end>"],
        "too many rows": ["3*5=⁰[15]5¹1⁰[12]3¹1<end>"],
        "no equals sign": ["32*4⁰[12]2¹[8]9⁰0<end>"],
        "no operator": ["324=⁰[12]2¹[8]9⁰0<end>"],
    },
    "long-multiplication, start": {
        "too few rows": ["<start>3*54=⁰[15]5¹1<end>"],
        "start in a row": ["<start>3*5=⁰[15]5¹<start><end>"],
    },
    "non-restoring-division": {
        "no end": ["7//3=-0:40-1:10-2:8'9'+9:1'0'-0:"],
        "nothing": ["7//3=<end>", "7//3=-0:<end>"],
        "no row that is below": ["7//3=-0:40-1:10<end>", "7//3=-0:40-1:10-2:<end>"],
        "left below 0": ["7//3=-0:40-1:10-2:8'9'-0:<end>", "7//3=-0:40-1:10-2:8'9'+9:<end>"],
        "still below 0 at the end": ["7//3=-0:40-1:10-2:8'9'+9:00+8:1'0'-0:<end>"],
        "wrong row width": [
            "7//3=-0:4-1:10-2:8'9'+9:1'0'-0:<end>",
            "7//3=-0:40-1:100-2:8'9'+9:1'0'-0:<end>",
            "7//3=-0:40-1:10-2:8'9'+9:1'00'-0:<end>",
        ],
        "wrong count": [
            "7//3=-1:40-2:10-3:8'9'+9:1'0'-0:<end>",
            "7//3=-0:40-2:10-3:8'9'+9:1'0'-0:<end>",
            "7//3=-0:40-1:10-2:8'9'+8:1'0'-0:<end>",
        ],
        "wrong sign": [
            "7//3=+0:40-1:10-2:8'9'+9:1'0'-0:<end>",
            "7//3=-0:40-1:10-2:8'9'-9:10'-0:<end>",
            "7//3=-0:40-1:10-2:8'9'+9:1'0'+9:<end>",
        ],
        "eleven rows": ["9//1=" + "".join(f"-{count}:00" for count in range(10)) + "-9:00'-0:<end>"],
        "no colon": ["7//3=-040-1:10-2:8'9'+9:1'0'-0:<end>", "7//3=-0:40-1:10-2:8'9'+9:1'0'-0<end>"],
        "no digits": ["7//3=-0:4:-1:10-2:8'9'+9:1'0'-0:<end>"],
        "too few steps": ["755//3=-0:40-1:10-2:8'9'+9:1'0'-0:<end>"],
        "too many steps": ["7//3=-0:40-1:10-2:8'9'+9:1'0'-0:00'+9:00'-0:<end>"],
        "extra tokens": ["7//3=-0:40-1:10-2:8'9'+9:1'0'-0:1<end>"],
        "no equals sign": ["7//3-0:40-1:10-2:8'9'+9:1'0'-0:<end>"],
    },
    "non-restoring-division, start": {
        "left below 0": ["<start>7//3=-0:40-1:10-2:8'9'-0:<end>"],
        "start in a row": ["<start>1%3=-0:8'<start>+9:1'0'-0:<end>"],
    },
    "insertion-sort": {
        "no end": ["a:821,b:9=a,8>ba", "a:821,b:9=a,8>b", "a:821,b:9="],
        "nothing": ["a:821,b:9=<end>", "a:821,b:9=<end>a,8>ba<end>"],
        "only the answer": ["a:821,b:9=ba<end>"],
        "a list is missing": ["a:821,b:9=a<end>", "a:1,b:0,c:0=a,0~b1>ca<end>"],
        "a list too many": ["a:821,b:9=a,8>ba,0<b8>ca<end>", "a:5=a,5~aa<end>"],
        "a number is missing": ["a:821,b:9=a,8>b<end>", "a:1,b:2=a,1<a<end>"],
        "a label twice": ["a:821,b:9=a,8>aa<end>", "a:821,b:9=a,8>bb<end>"],
        "a label of no number": ["a:821,b:9=a,8>ca<end>"],
        "no comma": ["a:821,b:9=a8>ba<end>", "a:821,b:9=,a,8>ba<end>"],
        "no digit": ["a:821,b:9=a,>ba<end>", "a:821,b:9=a,ba<end>"],
        "no comparison": ["a:821,b:9=a,8ba<end>", "a:821,b:9=a,88ba<end>"],
        "compared too far": ["a:821,b:9=a,8>2>ba<end>", "a:1,b:2=a,1~1<ab<end>"],
        "not compared far enough": ["a:821,b:9=a,8~ab<end>", "a:821,b:9=a,8~2~ab<end>"],
        "compared after the insertion": ["a:1,b:1,c:0=a,1~ab,1>c1>ab<end>"],
        "extra tokens": ["a:821,b:9=a,8>ba,<end>", "a:821,b:9==a,8>ba<end>"],
        "no equals sign": ["a:821,b:9a,8>ba<end>"],
    },
    "insertion-sort, start": {
        "no end": ["<start>a:821,b:9=a,8>ba"],
        "start in a list": ["<start>a:821,b:9=a,<start>>ba<end>"],
    },
    "labels": {
        "no end": ["a:821,b:9=ba", "a:821,b:9=", "a:821,b:9=ba,", "a:821,b:9=bab"],
        "nothing": ["a:821,b:9=<end>", "a:821,b:9=<end>ba<end>"],
        "repeated label": ["a:821,b:9=bb<end>", "a:821,b:9=bab<end>", "a:821,b:9=baa<end>"],
        "missing label": ["a:821,b:9=b<end>"],
        "a label of no number": ["a:821,b:9=bac<end>", "a:821,b:9=bc<end>"],
        "a digit": ["a:821,b:9=9a<end>", "a:821,b:9=ba9<end>"],
        "a comma": ["a:821,b:9=b,a<end>", "a:821,b:9=ba,<end>", "a:821,b:9=b:a:<end>"],
        "two answers": ["a:821,b:9=ba=ba<end>"],
        "no equals sign": ["a:821,b:9ba<end>"],
    },
    "labels, start": {
        "repeated label": ["<start>a:821,b:9=bb<end>"],
        "start in the answer": ["<start>a:821,b:9=<start>ba<end>"],
    },
    "residues": {
        "no residue": ["95+30==", "95+30=+"],
        "too short": ["95+30=", "95+30"],
        "too long": ["95+30=12=", "95+30=12+"],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_answer_is_read_as_none(name: str) -> None:
    for mistake, lines in MALFORMED[name].items():
        answers = dict(zip(lines, PAIRS[name].read_texts(*lines), strict=True))
        assert answers == dict.fromkeys(lines), mistake


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("complement", "<start>21-21=00-<end>"),
        ("complement", "<start>1-1=0-<end>"),
        ("usual complement", "<start>21-21=000-<end>"),
    ],
)
def test_the_complement_of_zero_is_minus_zero_and_read_as_none(name: str, line: str) -> None:
    assert PAIRS[name].read_texts(line) == [None]


@pytest.mark.parametrize("name", PAIRS)
def test_each_line_of_a_batch_is_read_on_its_own(name: str) -> None:
    pair = PAIRS[name]
    problems = pair.draw(30)
    lines = pair.write(problems)
    if pair.parallel or pair.format.end_id is None:
        assert pair.read(lines) == pair.task.answer(problems).texts()
        return
    ids = lines.ids.clone()
    # Every third line loses its answer.
    ids[::3] = ids[::3].where(~lines.target[::3], pair.format.end_id)
    expected: list[str | None] = list(pair.task.answer(problems).texts())
    expected[::3] = [None] * 10
    assert pair.format.read(ids) == expected


@pytest.mark.parametrize(
    "name", [n for n, pair in PAIRS.items() if pair.format.end_id is not None and not pair.parallel]
)
def test_tokens_after_the_end_are_not_read(name: str) -> None:
    pair = PAIRS[name]
    lines = pair.write(pair.problems)
    size = len(pair.format.vocabulary)
    generator = torch.Generator().manual_seed(0)
    after = torch.randint(size, (len(lines.ids), 9), generator=generator).int()
    nonsense = torch.randint(size, lines.ids.shape, generator=generator).int()
    ids = torch.cat([torch.where(lines.index < 0, nonsense, lines.ids), after], dim=1)
    assert pair.format.read(ids) == pair.task.answer(pair.problems).texts()


# Encoders --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["parallel", "mirrored"])
@pytest.mark.parametrize(
    ("written", "answer"),
    [
        (["3", "2", "<end>"], "23"),
        (["0", "<end>"], "0"),
        (["0", "1", "<end>"], "10"),
        (["3", "2", "<end>", "<pad>", "<pad>"], "23"),
        (["3", "2", "<end>", "7", "<end>", "+"], "23"),
        (["3", "2"], None),
        (["3", "2", "<pad>"], None),
        (["<end>"], None),
        (["<end>", "3", "2", "<end>"], None),
        (["3", "2", "0", "<end>"], None),
        (["0", "0", "<end>"], None),
        (["3", "<pad>", "2", "<end>"], None),
        (["3", "+", "<end>"], None),
        (["=", "3", "<end>"], None),
        ([], None),
    ],
)
def test_an_encoder_must_write_digits_and_an_end_from_the_first_target_on(
    name: str, written: list[str], answer: str | None
) -> None:
    format = PAIRS[name].format
    ids = torch.tensor([[format.vocabulary.id(token) for token in written]], dtype=torch.int64)
    assert format.read(ids) == [answer]
