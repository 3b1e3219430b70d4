"""ping of Windows: in any language, replies counted, nothing guessed below 1 ms."""

from pathlib import Path

import pytest

from patchstudy.errors import CaptureError
from patchstudy.loaders import LOADERS, ping_windows
from patchstudy.records import RawFile

EN = (
    "\r\nPinging 192.0.2.1 with 32 bytes of data:\r\n"
    "Reply from 192.0.2.1: bytes=32 time=12ms TTL=56\r\n"
    "Reply from 192.0.2.1: bytes=32 time=15ms TTL=56\r\n"
    "Request timed out.\r\n"
    "\r\nPing statistics for 192.0.2.1:\r\n"
    "    Packets: Sent = 3, Received = 2, Lost = 1 (33% loss),\r\n"
    "Approximate round trip times in milli-seconds:\r\n"
    "    Minimum = 12ms, Maximum = 15ms, Average = 13ms\r\n"
)
RU = (
    "Обмен пакетами с 192.0.2.1 по с 32 байтами данных:\n"
    "Ответ от 192.0.2.1: число байт=32 время=12мс TTL=117\n"
    "Ответ от 192.0.2.1: число байт=32 время=15мс TTL=117\n"
    "Превышен интервал ожидания для запроса.\n\n"
    "Статистика Ping для 192.0.2.1:\n"
    "    Пакетов: отправлено = 3, получено = 2, потеряно = 1\n    (33% потерь)\n"
    "Приблизительное время приема-передачи в мс:\n"
    "    Минимальное = 12мсек, Максимальное = 15 мсек, Среднее = 13 мсек\n"
)
ZH = (
    "正在 Ping 192.0.2.1 具有 32 字节的数据:\n"
    "来自 192.0.2.1 的回复: 字节=32 时间=12ms TTL=117\n"
    "来自 192.0.2.1 的回复: 字节=32 时间=15ms TTL=117\n"
    "请求超时。\n\n192.0.2.1 的 Ping 统计信息:\n"
    "    数据包: 已发送 = 3\uff0c已接收 = 2\uff0c丢失 = 1 (33% 丢失)\uff0c\n"
    "往返行程的估计时间(以毫秒为单位):\n"
    "    最短 = 12ms\uff0c最长 = 15ms\uff0c平均 = 13ms\n"
)
JA = (
    "192.0.2.1 に ping を送信しています 32 バイトのデータ:\n"
    "192.0.2.1 からの応答: バイト数 =32 時間 =12ms TTL=58\n"
    "192.0.2.1 からの応答: バイト数 =32 時間 =15ms TTL=58\n"
    "要求がタイムアウトしました。\n\n192.0.2.1 の ping 統計:\n"
    "    パケット数: 送信 = 3\u3001受信 = 2\u3001損失 = 1 (33% の損失)\u3001\n"
    "ラウンド トリップの概算時間 (ミリ秒):\n"
    "    最小 = 12ms\u3001最大 = 15ms\u3001平均 = 13ms\n"
)
#: Without the indent of the summary, as a log has it.
FR = (
    "Envoi d'une requête 'Ping'  192.0.2.1 avec 32 octets de données :\n"
    "Réponse de 192.0.2.1 : octets=32 temps=12 ms TTL=58\n"
    "Réponse de 192.0.2.1 : octets=32 temps=15 ms TTL=58\n"
    "Délai d'attente de la demande dépassé.\n\nStatistiques Ping pour 192.0.2.1:\n"
    "Paquets : envoyés = 3, reçus = 2, perdus = 1 (perte 33%),\n"
    "Durée approximative des boucles en millisecondes :\n"
    "Minimum = 12ms, Maximum = 15ms, Moyenne = 13ms\n"
)


def read(text, encoding="utf-8"):
    raw = RawFile.of(Path("run.txt"), text.encode(encoding))
    assert [name for name, one in LOADERS.items() if one.sniff(raw)] == ["ping_windows"]
    return ping_windows.load(raw)


def values(capture):
    return {one.metric: one.value for one in capture.measurements}


@pytest.mark.parametrize(
    "text", [EN, RU, ZH, JA, FR], ids=["en", "ru", "zh", "ja", "fr"]
)
def test_the_language_does_not_matter(text):
    assert values(read(text)) == pytest.approx({"loss": 1 / 3, "rtt_mean": 0.0135})


def test_the_code_page_of_the_console_does_not_matter():
    assert values(read(RU, "cp866"))["loss"] == pytest.approx(1 / 3)


def test_an_answer_of_a_router_is_no_reply_though_it_is_counted():
    told = "Reply from 192.0.2.254: Destination host unreachable."
    text = EN.replace("Request timed out.", told)
    capture = read(text.replace("Received = 2, Lost = 1", "Received = 3, Lost = 0"))
    assert values(capture)["loss"] == pytest.approx(1 / 3)
    assert "ping-errors" in {one.code for one in capture.caveats}


def test_a_time_below_a_millisecond_makes_the_mean_absent():
    capture = read(EN.replace("time=12ms", "time<1ms"))
    assert values(capture) == pytest.approx({"loss": 1 / 3})
    assert "rtt-absent" in {one.code for one in capture.caveats}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("Request timed out.\r\n", "", "2 replies and 0 other lines, 2 counted"),
        ("time=12ms", "time 12=x", "is no reply as ping prints it"),
        ("Lost = 1", "Lost = 0", "2 received and 0 lost are not 3 sent"),
    ],
)
def test_what_does_not_fit_is_refused(old, new, problem):
    with pytest.raises(CaptureError, match=problem):
        read(EN.replace(old, new))


def test_one_that_is_cut_short_is_refused():
    with pytest.raises(CaptureError, match="summary is missing"):
        read(EN.partition("\r\nPing statistics")[0])
